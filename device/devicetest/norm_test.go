package devicetest_test

import (
	"math"
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
)

// evaluate runs Interpret and returns its outputs.
func evaluate(k device.Kernel, dims []int, attr float64, in [][]float64, sizes ...int) [][]float64 {
	out := make([][]float64, len(sizes))
	for i, n := range sizes {
		out[i] = make([]float64, n)
	}
	devicetest.Interpret(&device.Call{Kernel: k, Dims: dims, Attr: attr}, in, out)
	return out
}

// Values computed by hand: columns (1, 3) and (2, 2), windows over 1 2 / 3 3, and the mean of two
// pixels.
func TestInterpretNormAndPool(t *testing.T) {
	const eps = 3
	x, gamma, beta, z := []float64{1, 2, 3, 2}, []float64{4, 1}, []float64{0.5, -1}, []float64{1, 0, -3, 5}
	mean, variance := []float64{2, 2}, []float64{1, 0}
	pixels := []float64{1, 2, 3, 3}
	for _, c := range []struct {
		kernel   device.Kernel
		dims     []int
		in, want [][]float64
	}{
		{device.BatchNorm, []int{2, 2}, [][]float64{x, gamma, beta}, [][]float64{{-1.5, -1, 2.5, -1}, mean, variance}},
		{device.BatchNormReLU, []int{2, 2}, [][]float64{x, gamma, beta}, [][]float64{{0, 0, 2.5, 0}, mean, variance}},
		{device.BatchNormAddReLU, []int{2, 2}, [][]float64{x, gamma, beta, z}, [][]float64{{0, 0, 0, 4}, mean,
			variance}},
		{device.Normalize, []int{2, 2}, [][]float64{x, gamma, beta, mean, variance}, [][]float64{{-1.5, -1, 2.5, -1}}},
		{device.NormalizeReLU, []int{2, 2}, [][]float64{x, gamma, beta, mean, variance}, [][]float64{{0, 0, 2.5, 0}}},
		{device.NormalizeAddReLU, []int{2, 2}, [][]float64{x, gamma, beta, mean, variance, z},
			[][]float64{{0, 0, 0, 4}}},
		{device.MaxPool, []int{1, 2, 2, 1, 2, 1, 0}, [][]float64{pixels}, [][]float64{{3}, {2}}},
		{device.MaxPool, []int{1, 2, 2, 1, 2, 2, 1}, [][]float64{pixels}, [][]float64{{1, 2, 3, 3}, {3, 2, 1, 0}}},
		{device.MaxPoolGrad, []int{1, 2, 2, 1, 2, 1, 1}, [][]float64{{1, 2, 3, 4, 5, 6, 7, 8, 9},
			{3, 3, 2, 3, 2, 2, 1, 0, 0}}, [][]float64{{1, 2 + 3, 4 + 5 + 7 + 8, 6 + 9}}},
		{device.AvgPool, []int{1, 2, 2}, [][]float64{{1, 2, 3, 5}}, [][]float64{{2, 3.5}}},
		{device.AvgPoolGrad, []int{1, 2, 2}, [][]float64{{2, 5}}, [][]float64{{1, 2.5, 1, 2.5}}},
	} {
		sizes := make([]int, len(c.want))
		for i := range sizes {
			sizes[i] = len(c.want[i])
		}
		got := evaluate(c.kernel, c.dims, eps, c.in, sizes...)
		for i := range got {
			for j, w := range c.want[i] {
				if math.Abs(got[i][j]-w) > 1e-14 {
					t.Errorf("%s: output %d is %v, want %v", c.kernel, i, got[i], c.want[i])
					break
				}
			}
		}
	}
}

// The gradients of normalization agree with central differences of the forward kernels, for a
// random weighting of y.
func TestInterpretNormGradients(t *testing.T) {
	const m, n, eps = 5, 3, 0.1
	x, gamma, beta, z, dy := numbers("x", m*n), numbers("gamma", n), numbers("beta", n), numbers("z",
		m*n), numbers("dy", m*n)
	dims := []int{m, n}
	for _, c := range []struct {
		forward, backward device.Kernel
		in                [][]float64
	}{
		{device.BatchNorm, device.BatchNormGrad, [][]float64{x, gamma, beta}},
		{device.BatchNormReLU, device.BatchNormReLUGrad, [][]float64{x, gamma, beta}},
		{device.BatchNormAddReLU, device.BatchNormAddReLUGrad, [][]float64{x, gamma, beta, z}},
	} {
		out := evaluate(c.forward, dims, eps, c.in, m*n, n, n)
		in, sizes := [][]float64{x, dy, gamma, out[1], out[2]}, []int{m * n, n, n}
		if c.backward != device.BatchNormGrad {
			in = [][]float64{x, out[0], dy, gamma, out[1], out[2]}
		}
		if c.backward == device.BatchNormAddReLUGrad {
			sizes = []int{m * n, m * n, n, n}
		}
		grads := evaluate(c.backward, dims, eps, in, sizes...)
		want := map[int][]float64{0: grads[0], 1: grads[len(grads)-2], 2: grads[len(grads)-1]}
		if len(grads) == 4 {
			want[3] = grads[1]
		}
		for operand, grad := range want {
			for i, old := range c.in[operand] {
				const h = 1e-5
				loss := func(v float64) (sum float64) {
					c.in[operand][i] = v
					for j, y := range evaluate(c.forward, dims, eps, c.in, m*n, n, n)[0] {
						sum += y * dy[j]
					}
					return sum
				}
				difference := (loss(old+h) - loss(old-h)) / (2 * h)
				c.in[operand][i] = old
				if math.Abs(difference-grad[i]) > 1e-8 {
					t.Errorf("%s: gradient %d of input %d is %v, by differences %v", c.backward, i, operand, grad[i],
						difference)
				}
			}
		}
	}
}
