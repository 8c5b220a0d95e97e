package kernels_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
)

// neighbour is a normalisation beside a product, in memory of the host. Its matrices are those of
// kernels.Norm: x, z, y, mask, dy, other, dx, dz.
type neighbour struct {
	kernels.Norm
	x, y, mask, dx, dz, arrived []byte
	vectors                     [9][]float32 // mean, variance, scale, shift, dgamma, dbeta, a, b, e
}

// newNeighbour makes a normalisation of m×c numbers with random operands. Its statistics are those of
// x.
func newNeighbour(h *host, e kernels.Element, m, c int, f kernels.NormEpilogue, seed uint64) *neighbour {
	x := numbers(seed, m*c)
	for i := range x {
		x[i] = x[i]*float32(1+i%c%3) + float32(i%c%5)
	}
	n := &neighbour{Norm: kernels.Norm{Element: e, M: m, C: c, Eps: 1e-5, Epilogue: f}}
	n.x, _ = encode(h, e, x)
	random := func(k uint64) kernels.Address {
		raw, _ := encode(h, e, numbers(seed+k, m*c))
		return at(h, raw)
	}
	for _, to := range []*[]byte{&n.y, &n.dx, &n.dz} {
		*to = make([]byte, len(n.x))
	}
	for i := range n.vectors {
		n.vectors[i] = make([]float32, c)
	}
	v := func(i int) kernels.Address { return at(h, n.vectors[i]) }
	n.X, n.Y, n.DX, n.DY = at(h, n.x), at(h, n.y), at(h, n.dx), random(1)
	n.Gamma, n.Beta = at(h, numbers(seed+2, c)), at(h, numbers(seed+3, c))
	n.Mean, n.Variance, n.Scale, n.Shift = v(0), v(1), v(2), v(3)
	n.DGamma, n.DBeta, n.FactorA, n.FactorB, n.FactorE = v(4), v(5), v(6), v(7), v(8)
	n.mask = make([]byte, n.MaskBytes())
	if f == kernels.AddReLU {
		n.Z, n.DZ, n.Mask = random(4), at(h, n.dz), at(h, n.mask)
		for i := range n.mask {
			n.mask[i] = byte(i * 7)
		}
	}
	n.arrived = make([]byte, n.ArrivedBytes())
	n.Arrived = at(h, n.arrived)
	// products have other parts
	n.Part = at(h, make([]float64, n.PartNumbers()+(&kernels.Pointwise{M: m, N: c}).PartNumbers()))
	h.run(n.Statistics())
	return n
}

// taken returns the outputs that a launch left, and clears them.
func (n *neighbour) taken() [][]byte {
	var all [][]byte
	for _, b := range []*[]byte{&n.y, &n.mask, &n.dx, &n.dz} {
		all = append(all, bytes.Clone(*b))
		clear(*b)
	}
	return all
}

// pointwiseCase is a product of m×k and k×n numbers, in about so many blocks.
type pointwiseCase struct{ m, n, k, blocks int }

// More than one tile and block along each direction, tails of all, steps of fewer than 64 products,
// and blocks of several tiles, with one step and with three.
var pointwiseCases = []pointwiseCase{{70, 8, 8, 0}, {200, 72, 40, 0}, {130, 136, 72, 0}, {64, 64, 64, 0},
	{1, 16, 24, 0}, {330, 16, 24, 1}, {350, 136, 136, 4}}

func eachPointwise(t *testing.T, test func(t *testing.T, h *host, e kernels.Element, c pointwiseCase)) {
	h := onHost(t)
	for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
		for i, c := range pointwiseCases {
			if e == kernels.BF16 && i%3 != 1 && os.Getenv("FSPDA_LONG") == "" {
				continue
			}
			name := fmt.Sprintf("%v %d×%d·%d in %d", e, c.m, c.k, c.n, c.blocks)
			t.Run(name, func(t *testing.T) { test(t, h, e, c) })
		}
	}
}

// nearProduct fails unless a product is that of the CPU, except for the order of sums and one
// rounding. Numbers are of size 1.
func nearProduct(t *testing.T, e kernels.Element, k int, got, want []float32) {
	t.Helper()
	near(t, "product", got, want, unit(e), float64(k)*0x1p-24*float64(8*k)/unit(e))
}

// A forward product equals the kernels that it replaces: the input has their bits, the product is the
// CPU's, and the statistics are those of its output.
func TestPointwiseForward(t *testing.T) {
	eachPointwise(t, func(t *testing.T, h *host, e kernels.Element, c pointwiseCase) {
		w, wNumbers := encode(h, e, numbers(9, c.n*c.k))
		for kind := range 4 {
			var in *neighbour
			out := newNeighbour(h, e, c.m, c.n, kernels.Plain, 20)
			a, _ := encode(h, e, numbers(8, c.m*c.k))
			p := kernels.Pointwise{Element: e, M: c.m, N: c.n, K: c.k, A: at(h, a), W: at(h, w), C: at(h, out.y),
				Out: &out.Norm, Blocks: c.blocks}
			if kind > 0 {
				f := kernels.ReLU
				if kind > 1 {
					f = kernels.AddReLU
				}
				in = newNeighbour(h, e, c.m, c.k, f, 30)
				if kind == 3 {
					z := newNeighbour(h, e, c.m, c.k, kernels.Plain, 40)
					in.Z, in.MeanZ, in.ScaleZ, in.ShiftZ = z.X, z.Mean, z.Scale, z.Shift
				}
				in.taken()
				h.run(in.Apply())
				want := in.taken()
				p.In, p.A = &in.Norm, 0
				h.run(p.Forward())
				a = bytes.Clone(in.y)
				if got := in.taken(); !bytes.Equal(got[0], want[0]) || !bytes.Equal(got[1], want[1]) {
					t.Fatalf("kind %d: the product stores another input or mask than norm_apply", kind)
				}
			} else {
				h.run(p.Forward())
			}
			product := make([]float32, c.m*c.n)
			onCPUCall(t, device.Conv, []int{c.m, 1, 1, c.k, c.n, 1, 1, 1, 0}, 0,
				[][]float32{decode(h, e, a), wNumbers}, [][]float32{product})
			got := decode(h, e, out.y)
			nearProduct(t, e, c.k, got, product)
			mean, variance, y := make([]float32, c.n), make([]float32, c.n), make([]float32, c.m*c.n)
			onCPUCall(t, device.BatchNorm, []int{c.m, c.n}, out.Eps,
				[][]float32{got, make([]float32, c.n), make([]float32, c.n)}, [][]float32{y, mean, variance})
			const sums = 64 * 0x1p-24
			near(t, "mean", out.vectors[0], mean, sums, 4*float64(c.k))
			near(t, "variance", out.vectors[1], variance, 2*sums, 1e-6)
			out.checkArrived(t)
		}
	})
}

// checkArrived fails unless the counts of arrived blocks are 0 again.
func (n *neighbour) checkArrived(t *testing.T) {
	t.Helper()
	if !bytes.Equal(n.arrived, make([]byte, len(n.arrived))) {
		t.Errorf("the counts of arrived blocks are %v after the launch, want 0", n.arrived)
	}
}

// The gradient of an input equals the kernels that it replaces: the gradient that it reads has their
// bits, the product is the CPU's, and what the next normalisation gets is what its own kernel
// computes from the product.
func TestPointwiseGrad(t *testing.T) {
	eachPointwise(t, func(t *testing.T, h *host, e kernels.Element, c pointwiseCase) {
		w, wNumbers := encode(h, e, numbers(9, c.n*c.k))
		for kind := range 4 { // no output, ReLU from its input, ReLU from bits, with another gradient
			f := kernels.Plain
			if kind%2 == 1 {
				f = kernels.ReLU
			}
			in := newNeighbour(h, e, c.m, c.k, f, 30)
			in.Y = 0
			h.run(in.GradSums())
			in.taken()
			h.run(in.GradApply())
			want := in.taken()
			c1 := make([]byte, c.m*c.n*e.Size())
			p := kernels.Pointwise{Element: e, M: c.m, N: c.n, K: c.k, W: at(h, w), C: at(h, c1), In: &in.Norm,
				Blocks: c.blocks}
			h.run(p.Grad())
			if got := in.taken(); !bytes.Equal(got[2], want[2]) {
				t.Fatalf("kind %d: the product stores another gradient than norm_grad_apply", kind)
			}
			product := make([]float32, c.m*c.n)
			onCPUCall(t, device.ConvGradX, []int{c.m, 1, 1, c.n, c.k, 1, 1, 1, 0}, 0,
				[][]float32{decode(h, e, want[2]), wNumbers}, [][]float32{product})
			nearProduct(t, e, c.k, decode(h, e, c1), product)
			if kind > 0 {
				compareOutputs(t, h, p, c1, kind)
			}
		}
	})
}

// compareOutputs compares the sums of a product's output with those of the kernel that reads c.
func compareOutputs(t *testing.T, h *host, p kernels.Pointwise, c []byte, kind int) {
	t.Helper()
	f := kernels.ReLU
	if kind > 1 {
		f = kernels.AddReLU
	}
	out := newNeighbour(h, p.Element, p.M, p.N, f, 20)
	if kind == 3 {
		out.Other = out.Z
	}
	out.Y, out.DY = 0, at(h, c)
	h.run(out.GradSums())
	wantDZ := bytes.Clone(out.dz)
	var want [5][]float32
	for i := range want {
		want[i] = slices.Clone(out.vectors[4+i])
		clear(out.vectors[4+i])
	}
	again := make([]byte, len(c))
	clear(out.dz)
	p.C, p.Out = at(h, again), &out.Norm
	h.run(p.Grad())
	if kind == 1 && !bytes.Equal(again, c) {
		t.Errorf("the product differs with sums")
	}
	if !bytes.Equal(out.dz, wantDZ) {
		t.Errorf("kind %d: dz differs from that of norm_grad_sums", kind)
	}
	// of sums of m numbers of the size of the gradient, some k
	size := float64(p.M * p.K)
	for i, what := range []string{"dgamma", "dbeta", "a", "b", "e"} {
		near(t, fmt.Sprintf("%s of kind %d", what, kind), out.vectors[4+i], want[i], 64*0x1p-24,
			[...]float64{size, size, 1e-3, 10 * float64(p.K), 10 * float64(p.K)}[i])
	}
	out.checkArrived(t)
}

// The statistics of columns that are equal, nearly equal or far from zero lose no digits that their
// kernel keeps.
func TestPointwiseStatisticsFarFromZero(t *testing.T) {
	h := onHost(t)
	const m, n, k = 150, 16, 8
	for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
		x, w := make([]float32, m*k), make([]float32, n*k)
		for i := range m {
			x[i*k], x[i*k+1] = 1, float32(i%3)
		}
		for j := range n {
			w[j*k], w[j*k+1] = float32(int(1)<<j), float32(j%4)/4*float32(int(1)<<j)/64
		}
		rawX, _ := encode(h, e, x)
		rawW, _ := encode(h, e, w)
		out, own := newNeighbour(h, e, m, n, kernels.Plain, 20), newNeighbour(h, e, m, n, kernels.Plain, 20)
		p := kernels.Pointwise{Element: e, M: m, N: n, K: k, A: at(h, rawX), W: at(h, rawW), C: at(h, out.y),
			Out: &out.Norm}
		own.X, own.Gamma, own.Beta = p.C, out.Gamma, out.Beta
		h.run(p.Forward(), own.Statistics())
		for i, what := range []string{"mean", "variance", "scale", "shift"} {
			near(t, what, out.vectors[i], own.vectors[i], 64*0x1p-24, 1e-6)
		}
		if v := out.vectors[1][0]; v != 0 {
			t.Errorf("%v: the variance of a column of equal numbers is %v, want 0", e, v)
		}
	}
}

// One kernel for both gradients equals the two: the gradient of the input and what it computes for
// the next normalisation have the bits of the kernel for that alone, except for sums over more
// rows, and the gradient of the filters is the CPU's.
func TestPointwiseBoth(t *testing.T) {
	h := onHost(t)
	for i, c := range []pointwiseCase{{130, 72, 64, 4}, {70, 264, 64, 4}, {70, 136, 128, 4}, {200, 40, 256, 4},
		{70, 64, 512, 4}, {350, 72, 64, 1}, {410, 72, 128, 3}, {330, 16, 512, 1}} {
		e := []kernels.Element{kernels.F16, kernels.BF16}[i%2]
		t.Run(fmt.Sprintf("%v %d×%d·%d", e, c.m, c.k, c.n), func(t *testing.T) {
			inF, outF := kernels.ReLU, kernels.AddReLU
			if i%2 == 1 {
				inF, outF = kernels.Plain, kernels.ReLU
			}
			in, out := newNeighbour(h, e, c.m, c.k, inF, 30), newNeighbour(h, e, c.m, c.n, outF, 20)
			in.Y, out.Y = 0, 0
			if outF == kernels.AddReLU {
				out.Other = out.Z
			}
			h.run(in.GradSums())
			w, _ := encode(h, e, numbers(9, c.n*c.k))
			x, xNumbers := encode(h, e, numbers(8, c.m*c.n))
			dx, dw := make([]byte, len(x)), make([]byte, len(w))
			p := kernels.Pointwise{Element: e, M: c.m, N: c.n, K: c.k, W: at(h, w), C: at(h, dx), In: &in.Norm,
				Out: &out.Norm, Input: at(h, x), DW: at(h, dw), Blocks: c.blocks}
			filters, part := p.FilterBytes()
			p.Filters, out.Part = at(h, make([]byte, filters)), at(h, make([]byte, max(part, 8*p.PartNumbers())))
			h.run(p.Grad())
			gradient := decode(h, e, in.dx)
			want := [][]byte{bytes.Clone(dx), bytes.Clone(out.dz)}
			var sums [5][]float32
			for i := range sums {
				sums[i] = slices.Clone(out.vectors[4+i])
			}
			clear(dx)
			clear(out.dz)
			h.run(p.Both()...)
			if !bytes.Equal(dx, want[0]) || !bytes.Equal(out.dz, want[1]) {
				t.Errorf("the gradient of the input differs from that of a kernel for it alone")
			}
			size := float64(c.m * c.k)
			for i, what := range []string{"dgamma", "dbeta", "a", "b", "e"} {
				near(t, what, out.vectors[4+i], sums[i], 64*0x1p-24,
					[...]float64{size, size, 1e-3, 10 * float64(c.k), 10 * float64(c.k)}[i])
			}
			product := make([]float32, c.n*c.k)
			onCPUCall(t, device.ConvGradW, []int{c.m, 1, 1, c.n, c.k, 1, 1, 1, 0}, 0, [][]float32{xNumbers, gradient},
				[][]float32{product})
			nearProduct(t, e, c.m, decode(h, e, dw), product)
			out.checkArrived(t)
		})
	}
}

// A forward product with a stride is the CPU's convolution.
func TestPointwiseStride(t *testing.T) {
	h := onHost(t)
	const images, height, width, k, n, stride = 3, 9, 6, 40, 72, 2
	const m = images * (height + 1) / 2 * (width / 2)
	x, xNumbers := encode(h, kernels.F16, numbers(8, images*height*width*k))
	w, wNumbers := encode(h, kernels.F16, numbers(9, n*k))
	out := newNeighbour(h, kernels.F16, m, n, kernels.Plain, 20)
	p := kernels.Pointwise{Element: kernels.F16, M: m, N: n, K: k, A: at(h, x), W: at(h, w), C: at(h, out.y),
		Out: &out.Norm, Height: height, Width: width, Stride: stride}
	h.run(p.Forward())
	product := make([]float32, m*n)
	onCPUCall(t, device.Conv, []int{images, height, width, k, n, 1, 1, stride, 0}, 0, [][]float32{xNumbers, wNumbers},
		[][]float32{product})
	nearProduct(t, kernels.F16, k, decode(h, kernels.F16, out.y), product)
}
