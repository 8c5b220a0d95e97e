package metric

import (
	"encoding/json"
	"math"
)

// Num is a number that may be undefined: NaN and infinities are written as JSON null and as an
// empty CSV cell.
type Num float64

// MarshalJSON writes the shortest decimal that reads back as the same number.
func (n Num) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (n *Num) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Num(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}
