package kernels_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
)

// encode rounds numbers to an element and returns the bytes and the rounded numbers.
func encode(h *host, e kernels.Element, v []float32) ([]byte, []float32) {
	raw := make([]byte, len(v)*e.Size())
	if e == kernels.F32 {
		for i, x := range v {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
		}
		return raw, v
	}
	h.run(kernels.Narrow(e, at(h, raw), at(h, v), len(v)))
	return raw, decode(h, e, raw)
}

// decode converts bytes of an element to float32.
func decode(h *host, e kernels.Element, raw []byte) []float32 {
	v := make([]float32, len(raw)/e.Size())
	if e == kernels.F32 {
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		return v
	}
	h.run(kernels.Widen(e, at(h, v), at(h, raw), len(v)))
	return v
}

// unit returns the largest relative rounding error of an element.
func unit(e kernels.Element) float64 { return [...]float64{0x1p-24, 0x1p-11, 0x1p-8}[e] }

// near fails unless |got-want| <= bound·(|want| + floor).
func near(t testing.TB, what string, got, want []float32, bound, floor float64) {
	t.Helper()
	worst, at := 0.0, 0
	for i := range want {
		if e := math.Abs(float64(got[i])-float64(want[i])) / (math.Abs(float64(want[i])) + floor); e > worst || e != e {
			worst, at = e, i
		}
	}
	if !(worst <= bound) {
		t.Errorf("%s: number %d is %v, want %v (error %.3g of it and %v, want %.3g at most)", what, at, got[at],
			want[at], worst, floor, bound)
	}
}

// normCase is one normalisation on both devices.
type normCase struct {
	e        kernels.Element
	m, c     int
	epilogue kernels.NormEpilogue
	mask     bool // the gradient gets the ReLU mask from bits
	input    bool // or from the input
	other    bool // the gradient has two summands
}

var forwards = [...]device.Kernel{device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU}
var backwards = [...]device.Kernel{device.BatchNormGrad, device.BatchNormReLUGrad, device.BatchNormAddReLUGrad}

func TestNorm(t *testing.T) {
	h := onHost(t)
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		for _, c := range []normCase{
			{m: 300, c: 64, epilogue: kernels.Plain}, {m: 300, c: 64, epilogue: kernels.ReLU, mask: true}, {m: 131,
				c: 24, epilogue: kernels.AddReLU},
			{m: 260, c: 64, epilogue: kernels.AddReLU, mask: true}, {m: 50, c: 13, epilogue: kernels.ReLU}, {m: 2, c: 1,
				epilogue: kernels.Plain},
			{m: 40, c: 72, epilogue: kernels.ReLU, input: true}, {m: 700, c: 128, epilogue: kernels.ReLU, input: true},
			{m: 700, c: 64, epilogue: kernels.AddReLU, mask: true, other: true}, {m: 70, c: 20,
				epilogue: kernels.AddReLU, other: true}, {m: 4500, c: 36, epilogue: kernels.ReLU, input: true},
		} {
			c.e = e
			t.Run(fmt.Sprintf("%v %d×%d epilogue %d", e, c.m, c.c, c.epilogue), func(t *testing.T) { c.compare(t, h) })
		}
	}
}

// compare runs forward and backward passes here and on the CPU engine with the same inputs.
func (c normCase) compare(t *testing.T, h *host) {
	mc := c.m * c.c
	x, z, dy := numbers(1, mc), numbers(2, mc), numbers(3, mc)
	for i := range x {
		x[i] = x[i]*float32(1+i%c.c%3) + float32(i%c.c) // columns with offsets
	}
	gamma, beta := numbers(4, c.c), numbers(5, c.c)
	rawX, x := encode(h, c.e, x)
	rawZ, z := encode(h, c.e, z)
	rawDY, dy := encode(h, c.e, dy)
	var other []byte
	if c.other { // dy is rounded, as its sum with another would be
		half := make([]float32, mc)
		for i, v := range dy {
			half[i] = v / 4
		}
		other, half = encode(h, c.e, half)
		rest := make([]float32, mc)
		for i, v := range dy {
			rest[i] = v - half[i]
		}
		rawDY, rest = encode(h, c.e, rest)
		for i := range dy {
			dy[i] = rest[i] + half[i]
		}
		_, dy = encode(h, c.e, dy)
	}
	y, dx, dz := make([]byte, len(rawX)), make([]byte, len(rawX)), make([]byte, len(rawX))
	var v [9][]float32 // mean, variance, scale, shift, dgamma, dbeta, a, b, e
	for i := range v {
		v[i] = make([]float32, c.c)
	}
	const eps = 1e-5
	n := kernels.Norm{Element: c.e, M: c.m, C: c.c, Eps: eps, Epilogue: c.epilogue, X: at(h, rawX), Y: at(h, y),
		NormParams: kernels.NormParams{Gamma: at(h, gamma), Beta: at(h, beta),
			Mean: at(h, v[0]), Variance: at(h, v[1]), Scale: at(h, v[2]), Shift: at(h, v[3])},
		NormGrads: kernels.NormGrads{DX: at(h, dx), DY: at(h, rawDY), DGamma: at(h, v[4]), DBeta: at(h, v[5]),
			FactorA: at(h, v[6]), FactorB: at(h, v[7]), FactorE: at(h, v[8])}}
	arrived := make([]byte, n.ArrivedBytes())
	n.Part, n.Arrived = at(h, make([]float64, n.PartNumbers())), at(h, arrived)
	in := [][]float32{x, gamma, beta}
	if c.epilogue == kernels.AddReLU {
		n.Z, n.DZ = at(h, rawZ), at(h, dz)
		in = append(in, z)
	}
	if c.mask {
		n.Mask = at(h, make([]byte, n.MaskBytes()))
	}
	h.run(n.Statistics(), n.Apply())

	wantY, mean, variance := make([]float32, mc), make([]float32, c.c), make([]float32, c.c)
	onCPUCall(t, forwards[c.epilogue], []int{c.m, c.c}, eps, in, [][]float32{wantY, mean, variance})
	const sums = 64 * 0x1p-24 // error of summing in float32
	near(t, "mean", v[0], mean, sums, 3)
	near(t, "variance", v[1], variance, 2*sums, 1e-6)
	gotY := decode(h, c.e, y)
	near(t, "y", gotY, wantY, unit(c.e)+4*sums, 4)

	if c.input {
		n.Y = 0
	}
	if c.other {
		n.Other = at(h, other)
	}
	h.run(n.Grad()...)
	// The CPU gets the outputs computed here, so that its ReLU mask is the same.
	wantDX, wantDZ, dgamma, dbeta := make([]float32, mc), make([]float32, mc), make([]float32, c.c), make([]float32,
		c.c)
	switch c.epilogue {
	case kernels.Plain:
		onCPUCall(t, backwards[c.epilogue], []int{c.m, c.c}, eps, [][]float32{x, dy, gamma, v[0], v[1]},
			[][]float32{wantDX, dgamma, dbeta})
	case kernels.ReLU:
		onCPUCall(t, backwards[c.epilogue], []int{c.m, c.c}, eps, [][]float32{x, gotY, dy, gamma, v[0], v[1]},
			[][]float32{wantDX, dgamma, dbeta})
	case kernels.AddReLU:
		onCPUCall(t, backwards[c.epilogue], []int{c.m, c.c}, eps, [][]float32{x, gotY, dy, gamma, v[0], v[1]},
			[][]float32{wantDX, wantDZ, dgamma, dbeta})
		sameBits(t, "dz", decode(h, c.e, dz), wantDZ)
	}
	root := math.Sqrt(float64(c.m))
	near(t, "dgamma", v[4], dgamma, sums, 10*root)
	near(t, "dbeta", v[5], dbeta, sums, 10*root)
	near(t, "dx", decode(h, c.e, dx), wantDX, unit(c.e)+4*sums, 4)
	if !bytes.Equal(arrived, make([]byte, len(arrived))) {
		t.Errorf("the counts of arrived blocks are %v after the launches, want 0", arrived)
	}
}

// With given statistics, float32 has the CPU's bits for all inputs.
func TestNormalize(t *testing.T) {
	h := onHost(t)
	const m, c, eps = 70, 36, 1e-5
	for epilogue, k := range map[kernels.NormEpilogue]device.Kernel{kernels.Plain: device.Normalize,
		kernels.ReLU: device.NormalizeReLU, kernels.AddReLU: device.NormalizeAddReLU} {
		x, z, gamma, beta, mean, variance := rough(1, m*c), numbers(2, m*c), numbers(3, c), numbers(4, c), numbers(5,
			c), numbers(6, c)
		for i := range variance {
			variance[i] *= variance[i]
		}
		in := [][]float32{x, gamma, beta, mean, variance}
		y, want := make([]float32, m*c), make([]float32, m*c)
		n := kernels.Norm{M: m, C: c, Eps: eps, Epilogue: epilogue, X: at(h, x), Y: at(h, y),
			NormParams: kernels.NormParams{Gamma: at(h, gamma), Beta: at(h, beta), Mean: at(h, mean),
				Variance: at(h, variance), Scale: at(h, make([]float32, c)), Shift: at(h, make([]float32, c))}}
		if epilogue == kernels.AddReLU {
			in, n.Z = append(in, z), at(h, z)
		}
		onCPUCall(t, k, []int{m, c}, eps, in, [][]float32{want})
		h.run(n.Given(), n.Apply())
		sameBits(t, string(k), y, want)
	}
}

// A mean that is large compared to the deviations does not cost precision of the variance.
func TestNormFarFromZero(t *testing.T) {
	h := onHost(t)
	const m, c = 4000, 8
	x := numbers(1, m*c)
	for i := range x {
		x[i] = 4096 + x[i]
	}
	gamma, beta := make([]float32, c), make([]float32, c)
	y, mean, variance, want, wantMean, wantVariance := make([]float32, m*c), make([]float32, c), make([]float32,
		c), make([]float32, m*c), make([]float32, c), make([]float32, c)
	onCPUCall(t, device.BatchNorm, []int{m, c}, 0, [][]float32{x, gamma, beta},
		[][]float32{want, wantMean, wantVariance})
	n := kernels.Norm{M: m, C: c, X: at(h, x), Y: at(h, y),
		NormParams: kernels.NormParams{Gamma: at(h, gamma), Beta: at(h, beta), Mean: at(h, mean),
			Variance: at(h, variance), Scale: at(h, make([]float32, c)), Shift: at(h, make([]float32, c))}}
	n.Part, n.Arrived = at(h, make([]float64, n.PartNumbers())), at(h, make([]byte, n.ArrivedBytes()))
	h.run(n.Statistics())
	near(t, "mean", mean, wantMean, 1e-7, 0)
	near(t, "variance", variance, wantVariance, 1e-5, 0)
}
