package vec

import "fmt"

// LabelError reports a label of a batch that is not a class.
type LabelError struct {
	Row     int
	Value   float64
	Classes int
}

func (e *LabelError) Error() string {
	return fmt.Sprintf("label of row %d is %v, want an integer from 0 to %d: check the labels of the data set "+
		"and the number of classes of the model", e.Row, e.Value, e.Classes-1)
}

// labelAt returns the label of row i as an index into n logits.
func labelAt(labels []float32, i, n int) (int, error) {
	v := labels[i]
	if v >= 0 && v < float32(n) { // false for NaN
		if c := int(v); float32(c) == v {
			return c, nil
		}
	}
	return 0, &LabelError{Row: i, Value: float64(v), Classes: n}
}
