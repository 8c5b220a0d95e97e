package vec

import (
	"errors"
	"math"
	"testing"
)

func TestLabelAt(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range []float32{-1, 10, 3.5, nan, inf, -inf, 1e30, -0.5} {
		_, err := labelAt([]float32{0, v}, 1, 10)
		var bad *LabelError
		if !errors.As(err, &bad) {
			t.Errorf("label %v is accepted", v)
			continue
		}
		if bad.Row != 1 || bad.Classes != 10 || bad.Value != float64(v) && v == v {
			t.Errorf("label %v: error holds %+v", v, *bad)
		}
	}
	for _, v := range []float32{0, 9, float32(math.Copysign(0, -1))} {
		if c, err := labelAt([]float32{v}, 0, 10); err != nil || c != int(v) {
			t.Errorf("label %v gives %d, %v", v, c, err)
		}
	}
}
