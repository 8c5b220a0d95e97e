package devicetest_test

import (
	"math"
	"slices"
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
	d.Do(device.Combine(x, device.Term{A: a, V: x}))
	if got := x.(*devicetest.Vector64).Data[0]; got != a {
		t.Errorf("got %v", got)
	}
	want := y.Data[0] + 2*(a-y.Data[0])
	d.Do(device.AddDiff(x, y, nil, device.Term{A: 2, V: y}))
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

// The definition of each operation has the results that its documentation states, on numbers whose
// arithmetic is exact.
func TestDefinitions(t *testing.T) {
	d := devicetest.NewFloat64()
	vec := func(numbers ...float64) device.Vector { return &devicetest.Vector64{Data: numbers} }
	at := d.NewIndex([]uint32{0, 2}, nil)
	term := func(a float64, numbers ...float64) device.Term { return device.Term{A: a, V: vec(numbers...)} }
	adam := device.Adam{Beta1: 0.5, Rest1: 0.25, Beta2: 2, Rest2: 0.5, Scale1: 8, Scale2: 2, Eps: 1, Decay: 0.5}
	limited := adam
	limited.Limit = 4
	for _, c := range []struct {
		op   device.Op
		want []device.Vector // of Out, then of To
	}{
		{device.Combine(vec(9, 9), term(2, 1, 3), term(-1, 4, 5)), []device.Vector{vec(-2, 1)}},
		{device.Combine(vec(9, 9)), []device.Vector{vec(0, 0)}},
		{device.Gather(vec(0, 0), vec(5, 6, 7), at), []device.Vector{vec(5, 7)}},
		{device.AddDiff(vec(3, 8), vec(1, 2), at, term(2, 1, 1, 1), term(-1, 0, 1, 2)),
			[]device.Vector{vec(5, 1, 13), vec(-2, 1, -4)}},
		{device.AddDiffs(term(3, 1), vec(10), []device.Term{term(2, 7), term(1, 12)}, term(2, 1), term(-1, 0)),
			[]device.Vector{vec(15), vec(-7)}},
		{device.ScatterAdd(vec(1, 1, 1), device.SparseTerm{A: 2, V: vec(3, 4), Idx: at},
			device.SparseTerm{A: -1, V: vec(1, 2, 3)}), []device.Vector{vec(6, -1, 6)}},
		{device.MoveCopy(vec(0, 0), vec(1, 2, 3), vec(5, 6, 7), vec(1, 1, 1), at),
			[]device.Vector{vec(5, 5), vec(6, 2, 8)}},
		{device.MoveCopy(vec(0, 0), vec(1, 2), vec(5, 6), nil, nil), []device.Vector{vec(4, 4), vec(5, 6)}},
		// m = 0.5·2 + 0.25·4 = 2, v = 2·0.5 + 0.5·16 = 9, g = 8·2/(2·3+1) + 0.5·2
		{device.AdamW(adam, vec(4), vec(2), vec(0.5), vec(2)), []device.Vector{vec(16./7 + 1), vec(2), vec(9)}},
		{device.AdamW(limited, vec(4), vec(2), vec(0.5), vec(2)), []device.Vector{vec(16./5 + 1), vec(2), vec(4)}},
		// numbers 1 to 4 of the vector by rows, and the transpose of a matrix of two rows
		{device.Multiply(device.Rows(vec(9, 1, 2, 3, 4), 1, 2, 2), 2, device.Rows(vec(1, 2, 3, 4, 5, 6), 0, 3, 2).T(),
			device.Rows(vec(1, 0, 0, 1, 1, 1), 0, 3, 2), -1), []device.Vector{vec(9, 11, 14, 13, 16)}},
	} {
		d.Do(c.op)
		got := append([]device.Vector{}, c.op.Out[:]...)
		for _, to := range c.op.To {
			got = append(got, to.V)
		}
		got = slices.DeleteFunc(got, func(v device.Vector) bool { return v == nil })
		for i, want := range c.want {
			if a, b := got[i].(*devicetest.Vector64).Data, want.(*devicetest.Vector64).Data; !slices.Equal(a, b) {
				t.Errorf("%s: vector %d is %v, want %v", c.op.Kind, i, a, b)
			}
		}
	}
	if got := device.InnerProduct(d, vec(1, 2, 3), vec(4, 5, -6)); got != -4 {
		t.Errorf("inner product %v, want -4", got)
	}
}

// Golden values of the Newton-Schulz iteration of Muon, computed by another program.
func TestOrthogonalize(t *testing.T) {
	d := devicetest.NewFloat64()
	for _, c := range []struct {
		rows, cols int
		in, want   []float64
	}{
		{2, 3, []float64{1, 2, 3, 4, 5, 7}, []float64{-0.6591771760, 0.1996672448, 0.5525044667,
			0.5583653236, 0.3184512553, 0.3446303176}},
		{3, 2, []float64{1, 4, 2, 5, 3, 7}, []float64{-0.6591771760, 0.5583653236, 0.1996672448, 0.3184512553,
			0.5525044667, 0.3446303176}},
		{2, 2, make([]float64, 4), make([]float64, 4)},
	} {
		v := &devicetest.Vector64{Data: slices.Clone(c.in)}
		d.Do(device.Orthogonalize(v, device.Orthogonal{Block: device.Block{Rows: c.rows, Cols: c.cols}, Scale: 1}))
		for i, want := range c.want {
			if math.Abs(v.Data[i]-want) > 1e-9 {
				t.Errorf("%d×%d: number %d is %.10f, want %.10f", c.rows, c.cols, i, v.Data[i], want)
			}
		}
	}
}
