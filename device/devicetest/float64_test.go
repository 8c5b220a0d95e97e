package devicetest_test

import (
	"math"
	"strings"
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
)

// The reference device passes the contract without rounding.
func TestFloat64Vectors(t *testing.T) {
	devicetest.ExactVectors(t, devicetest.NewFloat64())
}

// Values between operations are not rounded to float32.
func TestFloat64Keeps(t *testing.T) {
	d := devicetest.NewFloat64()
	x, y, a := d.NewVector(1), &devicetest.Vector64{Data: []float64{math.Pi}}, 1+0x1p-50
	d.Write(x, []float32{1})
	d.Combine(x, device.Term{A: a, V: x})
	if got := x.(*devicetest.Vector64).Data[0]; got != a {
		t.Errorf("got %v", got)
	}
	want := y.Data[0] + 2*(a-y.Data[0])
	d.AddDiff(x, y, nil, device.Term{A: 2, V: y})
	if got := y.Data[0]; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFloat64LoadsNothing(t *testing.T) {
	p, err := devicetest.NewFloat64().Load(&device.Code{Name: "mlp"})
	if p != nil || err == nil || !strings.Contains(err.Error(), "load mlp") {
		t.Errorf("program %v, error %v", p, err)
	}
}

func TestFloat64RefusesDescendingIndex(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	devicetest.NewFloat64().NewIndex([]uint32{2, 1}, nil)
}
