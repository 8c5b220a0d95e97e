package devicetest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/internal/rng"
)

func numbers(name string, n int) []float64 {
	s, v := rng.New(1, name), make([]float64, n)
	for i := range v {
		v[i] = s.Norm()
	}
	return v
}

// Values computed by hand.
func TestInterpretValues(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		kernel   device.Kernel
		dims     []int
		attr     float64
		in, want [][]float64
	}{
		{device.Linear, []int{2, 1, 2}, 0, [][]float64{{1, 2, 3, 4}, {10, 20}, {0.5}}, [][]float64{{50.5, 110.5}}},
		{device.LinearGradX, []int{1, 2, 2}, 0, [][]float64{{1, 2}, {10, 20, 30, 40}}, [][]float64{{70, 100}}},
		{device.LinearGradW, []int{2, 1, 2}, 0, [][]float64{{1, 2, 3, 4}, {10, 20}}, [][]float64{{70, 100}, {30}}},
		{device.Sigmoid, []int{2}, 0, [][]float64{{0, math.Log(3)}}, [][]float64{{0.5, 0.75}}},
		{device.SigmoidGrad, []int{2}, 0, [][]float64{{0.5, 0.75}, {4, 16}}, [][]float64{{1, 3}}},
		{device.ReLU, []int{3}, 0, [][]float64{{-1, 2, nan}}, [][]float64{{0, 2, nan}}},
		{device.ReLUGrad, []int{3}, 0, [][]float64{{0, 2, nan}, {5, 6, 7}}, [][]float64{{0, 6, 0}}},
		{device.SoftmaxCrossEntropy, []int{2, 2}, 0, [][]float64{{0, 0, 0, math.Log(3)}, {0, 1}},
			[][]float64{{(math.Ln2 + math.Log(4.0/3)) / 2}, {-0.25, 0.25, 0.125, -0.125}}},
		{device.Score, []int{3, 2}, 0, [][]float64{{1, 1, 1, 1, nan, 1}, {0, 1, 0}}, [][]float64{{nan, 1, 2}}},
		{device.HalfSquare, []int{2}, 3, [][]float64{{1, 3}}, [][]float64{{15}}},
		{device.Scale, []int{2}, 3, [][]float64{{1, 3}}, [][]float64{{3, 9}}},
		{device.ScaleBy, []int{2}, 3, [][]float64{{1, 3}, {2}}, [][]float64{{6, 18}}},
		{device.Add, []int{2}, 0, [][]float64{{1, 3}, {2, 5}}, [][]float64{{3, 8}}},
		{device.AddScaled, []int{2}, 10, [][]float64{{1, 3}, {2, 5}}, [][]float64{{21, 53}}},
		{device.LinearSigmoid, []int{1, 2, 1}, 0, [][]float64{{1}, {-2, math.Log(3) - 1}, {2, 1}},
			[][]float64{{0.5, 0.75}}},
		{device.LinearReLU, []int{1, 2, 1}, 0, [][]float64{{1}, {-3, 4}, {2, 1}}, [][]float64{{0, 5}}},
		{device.LinearGradXSigmoid, []int{1, 2, 2}, 0, [][]float64{{1, 2}, {10, 20, 30, 40}, {0.5, 0.75}},
			[][]float64{{17.5, 18.75}}},
		{device.LinearGradXReLU, []int{1, 2, 2}, 0, [][]float64{{1, 2}, {10, 20, 30, 40}, {0, 2}},
			[][]float64{{0, 100}}},
		{device.LinearGradWDecay, []int{2, 1, 2}, 10, [][]float64{{1, 2, 3, 4}, {10, 20}, {5, -6}},
			[][]float64{{120, 40}, {30}}},
		// One row of three pixels and a padded filter of three taps; then pixels of two channels,
		// two filters, a stride.
		{device.Conv, []int{1, 1, 3, 1, 1, 1, 3, 1, 0}, 0, [][]float64{{1, 2, 3}, {100, 10, 1}}, [][]float64{{123}}},
		{device.Conv, []int{1, 2, 2, 1, 1, 2, 2, 1, 1}, 0, [][]float64{{1, 2, 3, 4}, {1000, 100, 10, 1}},
			[][]float64{{1, 12, 20, 103, 1234, 2040, 300, 3400, 4000}}},
		{device.Conv, []int{1, 1, 3, 2, 2, 1, 1, 2, 0}, 0, [][]float64{{1, 2, 3, 4, 5, 6}, {10, 1, 1, 10}},
			[][]float64{{12, 21, 56, 65}}},
		{device.ConvGradX, []int{1, 1, 3, 2, 2, 1, 1, 2, 0}, 0, [][]float64{{1, 2, 3, 4}, {10, 1, 1, 10}},
			[][]float64{{12, 21, 0, 0, 34, 43}}},
		{device.ConvGradW, []int{1, 1, 3, 2, 2, 1, 1, 2, 0}, 0, [][]float64{{1, 2, 3, 4, 5, 6}, {1, 10, 100, 1000}},
			[][]float64{{501, 602, 5010, 6020}}},
	} {
		got := make([][]float64, len(c.want))
		for i := range got {
			got[i] = make([]float64, len(c.want[i]))
		}
		devicetest.Interpret(&device.Call{Kernel: c.kernel, Dims: c.dims, Attr: c.attr}, c.in, got)
		for i := range got {
			for j, w := range c.want[i] {
				if g := got[i][j]; !(math.Abs(g-w) < 1e-14*(1+math.Abs(w))) && !(g != g && w != w) {
					t.Errorf("%s: output %d, element %d is %v, want %v", c.kernel, i, j, g, w)
				}
			}
		}
	}
}

// Each gradient kernel agrees with central differences of its forward kernel, for a random
// weighting of the outputs.
func TestInterpretGradients(t *testing.T) {
	const m, n, k = 3, 4, 5
	x, w, b, labels := numbers("x", m*k), numbers("w", n*k), numbers("b", n), []float64{1, 3, 0}
	z, dy := numbers("z", m*n), numbers("dy", m*n)
	call := func(kernel device.Kernel, dims []int, in [][]float64, sizes ...int) [][]float64 {
		out := make([][]float64, len(sizes))
		for i, s := range sizes {
			out[i] = make([]float64, s)
		}
		devicetest.Interpret(&device.Call{Kernel: kernel, Dims: dims}, in, out)
		return out
	}
	weighted := func(y []float64) (s float64) {
		for i, v := range y {
			s += v * dy[i]
		}
		return s
	}
	mnk, flat := []int{m, n, k}, []int{m * n}
	line := func() float64 { return weighted(call(device.Linear, mnk, [][]float64{x, w, b}, m*n)[0]) }
	byWeights := call(device.LinearGradW, mnk, [][]float64{x, dy}, n*k, n)
	for _, c := range []struct {
		name string
		at   []float64
		f    func() float64
		want []float64
	}{
		{"dx", x, line, call(device.LinearGradX, mnk, [][]float64{dy, w}, m*k)[0]},
		{"dW", w, line, byWeights[0]},
		{"db", b, line, byWeights[1]},
		{"sigmoid", z, func() float64 { return weighted(call(device.Sigmoid, flat, [][]float64{z}, m*n)[0]) },
			call(device.SigmoidGrad, flat, [][]float64{call(device.Sigmoid, flat, [][]float64{z}, m*n)[0], dy},
				m*n)[0]},
		{"relu", z, func() float64 { return weighted(call(device.ReLU, flat, [][]float64{z}, m*n)[0]) },
			call(device.ReLUGrad, flat, [][]float64{call(device.ReLU, flat, [][]float64{z}, m*n)[0], dy}, m*n)[0]},
		{"loss", z, func() float64 {
			return call(device.SoftmaxCrossEntropy, []int{m, n}, [][]float64{z, labels}, 1, m*n)[0][0]
		}, call(device.SoftmaxCrossEntropy, []int{m, n}, [][]float64{z, labels}, 1, m*n)[1]},
	} {
		for i, old := range c.at {
			const h = 1e-5
			c.at[i] = old + h
			up := c.f()
			c.at[i] = old - h
			down := c.f()
			c.at[i] = old
			if got := (up - down) / (2 * h); math.Abs(got-c.want[i]) > 1e-9 {
				t.Errorf("%s: element %d of the gradient is %v, by differences %v", c.name, i, c.want[i], got)
			}
		}
	}
}

// Operands that do not match panic.
func TestInterpretPanics(t *testing.T) {
	two := []float64{1, 2}
	for want, f := range map[string]func(){
		"devicetest: add: input 1 has length 1, want 2": func() {
			devicetest.Interpret(&device.Call{Kernel: device.Add, Dims: []int{2}}, [][]float64{two, {1}},
				[][]float64{two})
		},
		"devicetest: add: 1 inputs, want 2": func() {
			devicetest.Interpret(&device.Call{Kernel: device.Add, Dims: []int{2}}, [][]float64{two}, [][]float64{two})
		},
		"devicetest: x: kernel is unknown": func() { devicetest.Interpret(&device.Call{Kernel: "x"}, nil, nil) },
		"devicetest: label 2, want an integer from 0 to 1": func() {
			devicetest.Interpret(&device.Call{Kernel: device.Score, Dims: []int{1, 2}}, [][]float64{two, {2}},
				[][]float64{{0, 0, 0}})
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			f()
		}()
	}
}
