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

// target is the wanted result of a row of logits: a class, which has a weight, and a second
// class, which has the rest. The second is another class, unless the weight is 1.
type target struct {
	class, other int
	weight       float64
}

// of returns the weight of class c.
func (t target) of(c int) float64 {
	switch c {
	case t.class:
		return t.weight
	case t.other:
		return 1 - t.weight
	}
	return 0
}

// targetAt returns the target of row i, of which labels has `each` numbers: the class alone, or a
// class, a second class and a weight.
func targetAt(labels []float32, i, each, n int) (t target, err error) {
	if each == 1 {
		t.class, err = labelAt(labels, i, n)
		return target{t.class, t.class, 1}, err
	}
	for k, class := range []*int{&t.class, &t.other} {
		if *class, err = labelAt(labels, each*i+k, n); err != nil {
			return t, &LabelError{Row: i, Value: float64(labels[each*i+k]), Classes: n}
		}
	}
	if t.weight = float64(labels[each*i+2]); t.class == t.other {
		t.weight = 1
	}
	return t, nil
}
