package membership

import (
	"encoding/json"
	"fmt"
)

// Exchange is the place of an exchange in a run: exchange number K of iteration T. K counts from 0, and
// is above it in methods with several exchanges in an iteration. In JSON it is T, or [T, K] where K is
// not 0.
type Exchange struct{ T, K int }

// Head is the place before the first exchange of iteration t.
func Head(t int) Exchange { return Exchange{t, -1} }

// Before reports whether the exchange is earlier than another one.
func (e Exchange) Before(o Exchange) bool { return e.T < o.T || e.T == o.T && e.K < o.K }

// Later returns the later one of two exchanges.
func (e Exchange) Later(o Exchange) Exchange {
	if e.Before(o) {
		return o
	}
	return e
}

// next returns the exchange after e where an iteration has a given number of them.
func (e Exchange) next(each int) Exchange {
	if e.K+1 < each {
		return Exchange{e.T, e.K + 1}
	}
	return Exchange{T: e.T + 1}
}

func (e Exchange) String() string {
	if e.K == 0 {
		return fmt.Sprintf("iteration %d", e.T)
	}
	return fmt.Sprintf("exchange %d, counted from 0, of iteration %d", e.K, e.T)
}

func (e Exchange) MarshalJSON() ([]byte, error) {
	if e.K == 0 {
		return json.Marshal(e.T)
	}
	return json.Marshal([]int{e.T, e.K})
}

func (e *Exchange) UnmarshalJSON(text []byte) error {
	var both []int
	if *e = (Exchange{}); json.Unmarshal(text, &e.T) == nil {
		return nil
	}
	if err := json.Unmarshal(text, &both); err != nil || len(both) != 2 {
		return fmt.Errorf("%s is no exchange: expected an iteration, or [iteration, number of the exchange]", text)
	}
	e.T, e.K = both[0], both[1]
	return nil
}
