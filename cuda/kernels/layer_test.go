package kernels_test

import (
	"math"
	"testing"

	"fspda/cpu"
	"fspda/cuda/kernels"
	"fspda/device"
)

// onCPUCall runs a kernel of the CPU engine.
func onCPUCall(t testing.TB, k device.Kernel, dims []int, attr float64, in, out [][]float32) {
	t.Helper()
	if err := cpu.Call(&device.Call{Kernel: k, Dims: dims, Attr: attr}, in, out); err != nil {
		t.Fatal(err)
	}
}

// rough returns numbers that include difficult values: zeros of both signs, large and small
// numbers, infinities and NaN.
func rough(seed uint64, n int) []float32 {
	v := numbers(seed, n)
	for i := range v {
		switch i % 7 {
		case 1:
			v[i] *= 30
		case 3:
			v[i] *= 1e-30
		}
	}
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 200, -200, 88.8, -104, 1e-45}
	for i, s := range special {
		if 11*i < n {
			v[11*i] = float32(s)
		}
	}
	return v
}

func TestActivations(t *testing.T) {
	h := onHost(t)
	const n = 515
	x, dy := rough(1, n), numbers(2, n)
	for _, c := range []struct {
		f             kernels.Activation
		forward, grad device.Kernel
	}{{kernels.SigmoidOf, device.Sigmoid, device.SigmoidGrad}, {kernels.ReLUOf, device.ReLU, device.ReLUGrad}} {
		y, dx, want, wantDX := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
		onCPUCall(t, c.forward, []int{n}, 0, [][]float32{x}, [][]float32{want})
		onCPUCall(t, c.grad, []int{n}, 0, [][]float32{want, dy}, [][]float32{wantDX})
		h.run(kernels.Activate(kernels.F32, at(h, y), at(h, x), n, c.f),
			kernels.ActivateGrad(kernels.F32, at(h, dx), at(h, y), at(h, dy), n, c.f))
		sameBits(t, string(c.forward), y, want)
		sameBits(t, string(c.grad), dx, wantDX)
	}
}

// Bias does the same as the CPU's fused layers after the product, here with an identity matrix.
func TestBias(t *testing.T) {
	h := onHost(t)
	const m, n = 33, 10
	x, b := numbers(1, m*n), numbers(2, n)
	eye := make([]float32, n*n)
	for i := range n {
		eye[i*n+i] = 1
	}
	for activation, k := range map[kernels.Activation]device.Kernel{kernels.Identity: device.Linear,
		kernels.SigmoidOf: device.LinearSigmoid, kernels.ReLUOf: device.LinearReLU} {
		want := make([]float32, m*n)
		onCPUCall(t, k, []int{m, n, n}, 0, [][]float32{x, eye, b}, [][]float32{want})
		got, p := copied(h, x)
		h.run(kernels.Bias(kernels.F32, p, at(h, b), m, n, activation))
		sameBits(t, string(k), got, want)
	}
}

func TestColumnSums(t *testing.T) {
	h := onHost(t)
	for _, c := range [][2]int{{1, 1}, {256, 10}, {256, 100}, {65, 33}, {63, 70}} {
		m, n := c[0], c[1]
		dy, x := numbers(1, m*n), make([]float32, m)
		want, dw := make([]float32, n), make([]float32, n)
		onCPUCall(t, device.LinearGradW, []int{m, n, 1}, 0, [][]float32{x, dy}, [][]float32{dw, want})
		got := make([]float32, n)
		h.run(kernels.ColumnSums(kernels.F32, at(h, got), at(h, dy), m, n))
		sameBits(t, "column sums", got, want)
	}
}

func TestLoss(t *testing.T) {
	h := onHost(t)
	for _, c := range [][2]int{{1, 1}, {256, 10}, {7, 1000}, {3, 5000}, {9, 17}} {
		m, n := c[0], c[1]
		logits, labels := numbers(1, m*n), make([]float32, m)
		for i := range labels {
			labels[i] = float32(i * 7 % n)
			logits[i*n+int(labels[i])] *= float32(1 + i%5*10) // some rows are nearly certain
		}
		for _, smooth := range []float64{0, 0.1} {
			loss, want := make([]float32, 1), make([]float32, 1)
			d, wantD := make([]float32, m*n), make([]float32, m*n)
			onCPUCall(t, device.SoftmaxCrossEntropy, []int{m, n}, smooth, [][]float32{logits, labels},
				[][]float32{want, wantD})
			bad := []uint32{kernels.NoBadRow}
			h.run(kernels.SoftmaxCrossEntropy(at(h, loss), at(h, d), at(h, logits), at(h, labels),
				at(h, make([]float64, m)), at(h, bad), m, n, smooth)...)
			sameBits(t, "gradient of the loss", d, wantD)
			if smooth == 0 {
				sameBits(t, "loss", loss, want)
				// the smoothed part is summed in another order
			} else if math.Abs(float64(loss[0]-want[0])) > 1.2e-7*float64(want[0]) {
				t.Errorf("%d×%d: smoothed loss %v, want %v", m, n, loss[0], want[0])
			}
			if bad[0] != kernels.NoBadRow {
				t.Errorf("row %d is bad", bad[0])
			}
		}
		logits[n/2] = float32(math.NaN())
		sums, want, hits, bad := make([]float32, 3), make([]float32, 3), make([]uint32, 2), []uint32{kernels.NoBadRow}
		onCPUCall(t, device.Score, []int{m, n}, 0, [][]float32{logits, labels}, [][]float32{want})
		h.run(kernels.Score(at(h, sums), at(h, logits), at(h, labels), at(h, make([]float64, m+1)), at(h, hits),
			at(h, bad), m, n)...)
		sameBits(t, "score", sums, want)
		if hits[0] != 0 || hits[1] != 0 {
			t.Error("hits are not zero again")
		}
	}
}

// Rows with two classes have the CPU's gradient to the bit.
func TestMixedLoss(t *testing.T) {
	h := onHost(t)
	for _, c := range [][2]int{{1, 1}, {256, 10}, {7, 1000}, {3, 5000}, {9, 17}} {
		m, n := c[0], c[1]
		logits, labels := numbers(1, m*n), make([]float32, 3*m)
		for i := range m {
			first := i * 7 % n
			labels[3*i], labels[3*i+1] = float32(first), float32(i*5%n)
			labels[3*i+2] = []float32{0, 0.3, 0.625, 1}[i%4]
			logits[i*n+first] *= float32(1 + i%5*10) // some rows are nearly certain
		}
		for _, smooth := range []float64{0, 0.1} {
			loss, want := make([]float32, 1), make([]float32, 1)
			d, wantD := make([]float32, m*n), make([]float32, m*n)
			onCPUCall(t, device.SoftmaxCrossEntropyMixed, []int{m, n}, smooth, [][]float32{logits, labels},
				[][]float32{want, wantD})
			run := func(bad []uint32) {
				h.run(kernels.SoftmaxCrossEntropyMixed(at(h, loss), at(h, d), at(h, logits), at(h, labels),
					at(h, make([]float64, m)), at(h, bad), m, n, smooth)...)
			}
			bad := []uint32{kernels.NoBadRow}
			run(bad)
			sameBits(t, "gradient of the loss", d, wantD)
			if smooth == 0 {
				sameBits(t, "loss", loss, want)
			} else if math.Abs(float64(loss[0]-want[0])) > 1.2e-7*float64(want[0]) {
				t.Errorf("%d×%d: smoothed loss %v, want %v", m, n, loss[0], want[0])
			}
			if bad[0] != kernels.NoBadRow {
				t.Errorf("row %d is bad", bad[0])
			}
			second := labels[3*m-2]
			labels[3*m-2] = float32(n)
			if run(bad); int(bad[0]) != m-1 {
				t.Errorf("row %d is bad, want the last, whose second label is not a class", bad[0])
			}
			labels[3*m-2] = second
		}
	}
}

// The first label that is not a class is reported.
func TestBadLabels(t *testing.T) {
	h := onHost(t)
	const m, n = 40, 10
	for _, v := range []float32{-1, 10, 2.5, float32(math.NaN())} {
		labels := make([]float32, m)
		labels[31], labels[17] = v, v
		bad := []uint32{kernels.NoBadRow}
		h.run(kernels.SoftmaxCrossEntropy(at(h, make([]float32, 1)), at(h, make([]float32, m*n)),
			at(h, numbers(1, m*n)), at(h, labels), at(h, make([]float64, m)), at(h, bad), m, n, 0)...)
		if bad[0] != 17 {
			t.Errorf("label %v: row %d is bad, want 17", v, bad[0])
		}
	}
}
