package kernels_test

import (
	"fmt"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
)

// groupNormCase is one normalisation of groups on both devices.
type groupNormCase struct {
	e          kernels.Element
	n, m, c, g int
}

func groupNormCases() (all []groupNormCase) {
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		for _, d := range [][4]int{{3, 64, 32, 2}, {2, 49, 10, 5}, {2, 300, 6, 1}, {1, 1, 1, 1}, {5, 9, 48, 48}} {
			all = append(all, groupNormCase{e, d[0], d[1], d[2], d[3]})
		}
	}
	return all
}

// groupNormRun holds the operands of a case: numbers rounded to its element, and their bytes.
type groupNormRun struct {
	groupNormCase
	h                    *host
	x, z, dy             []float32
	rawX, rawZ, rawDY    []byte
	y, dx, dz            []byte
	gamma, beta, v       []float32
	mean, variance       []float32
	dgamma, dbeta, dv    []float32
	scratch              []byte
	dims                 []int
	wantMean, wantSquare []float32
}

func (c groupNormCase) on(h *host) *groupNormRun {
	size := c.n * c.m * c.c
	r := &groupNormRun{groupNormCase: c, h: h, x: numbers(1, size), z: numbers(2, size), dy: numbers(3, size),
		gamma: numbers(4, c.c), beta: numbers(5, c.c), v: numbers(6, c.c), dims: []int{c.n, c.m, c.c, c.g}}
	for i := range r.x {
		r.x[i] = r.x[i]*float32(1+i%c.c%3) + float32(i%5)
	}
	r.rawX, r.x = encode(h, c.e, r.x)
	r.rawZ, r.z = encode(h, c.e, r.z)
	r.rawDY, r.dy = encode(h, c.e, r.dy)
	r.y, r.dx, r.dz = make([]byte, len(r.rawX)), make([]byte, len(r.rawX)), make([]byte, len(r.rawX))
	for _, p := range []*[]float32{&r.mean, &r.variance, &r.wantMean, &r.wantSquare} {
		*p = make([]float32, c.n*c.g)
	}
	for _, p := range []*[]float32{&r.dgamma, &r.dbeta, &r.dv} {
		*p = make([]float32, c.c)
	}
	return r
}

// kernel returns the normalisation; y and dz only where they are used.
func (r *groupNormRun) kernel(epilogue kernels.NormEpilogue) kernels.GroupNorm {
	n := kernels.GroupNorm{Element: r.e, Images: r.n, M: r.m, C: r.c, G: r.g, Eps: 1e-3, Epilogue: epilogue,
		X: at(r.h, r.rawX), Y: at(r.h, r.y), Z: at(r.h, r.rawZ), Gamma: at(r.h, r.gamma), Beta: at(r.h, r.beta),
		V: at(r.h, r.v), Mean: at(r.h, r.mean), Variance: at(r.h, r.variance),
		GroupNormGrads: kernels.GroupNormGrads{DX: at(r.h, r.dx), DY: at(r.h, r.rawDY), DGamma: at(r.h, r.dgamma),
			DBeta: at(r.h, r.dbeta), DV: at(r.h, r.dv)}}
	r.scratch = make([]byte, n.ScratchBytes())
	n.Scratch = at(r.h, r.scratch)
	return n
}

// closeTo compares a result in elements with the CPU's.
func (r *groupNormRun) closeTo(t *testing.T, what string, raw []byte, want []float32) {
	t.Helper()
	near(t, what, decode(r.h, r.e, raw), want, 4*unit(r.e), 1)
}

func (r *groupNormRun) nearVectors(t *testing.T, what string, got, want []float32) {
	t.Helper()
	near(t, what, got, want, 0x1p-20, 1e-2)
}

func TestGroupNorm(t *testing.T) {
	h := onHost(t)
	forward := []device.Kernel{device.GroupNorm, device.GroupNormReLU, device.GroupNormAddReLU}
	backward := []device.Kernel{device.GroupNormGrad, device.GroupNormReLUGrad, device.GroupNormAddReLUGrad}
	for _, c := range groupNormCases() {
		for epilogue := range kernels.NormEpilogue(3) {
			t.Run(fmt.Sprintf("%+v epilogue %d", c, epilogue), func(t *testing.T) {
				r := c.on(h)
				n := r.kernel(epilogue)
				h.run(n.Forward()...)
				in := [][]float32{r.x, r.gamma, r.beta}
				if epilogue == kernels.AddReLU {
					in = append(in, r.z)
				}
				want := make([]float32, len(r.x))
				onCPUCall(t, forward[epilogue], r.dims, 1e-3, in, [][]float32{want, r.wantMean, r.wantSquare})
				r.closeTo(t, "y", r.y, want)
				r.nearVectors(t, "mean", r.mean, r.wantMean)
				r.nearVectors(t, "variance", r.variance, r.wantSquare)

				y := decode(h, c.e, r.y)
				in = [][]float32{r.x, y, r.dy, r.gamma, r.mean, r.variance}
				dx, dz, dgamma, dbeta := make([]float32, len(r.x)), make([]float32, len(r.x)), make([]float32,
					c.c), make([]float32, c.c)
				out := [][]float32{dx, dgamma, dbeta}
				switch epilogue {
				case kernels.Plain:
					in = append(in[:1], in[2:]...)
					n.Y = 0
				case kernels.AddReLU:
					n.DZ, out = at(h, r.dz), [][]float32{dx, dz, dgamma, dbeta}
				}
				h.run(n.Grad()...)
				onCPUCall(t, backward[epilogue], r.dims, 1e-3, in, out)
				r.closeTo(t, "dx", r.dx, dx)
				r.nearVectors(t, "dgamma", r.dgamma, dgamma)
				r.nearVectors(t, "dbeta", r.dbeta, dbeta)
				if epilogue == kernels.AddReLU {
					sameBits(t, "dz", decode(h, c.e, r.dz), dz)
				}
			})
		}
	}
}

func TestEvoNorm(t *testing.T) {
	h := onHost(t)
	for _, c := range groupNormCases() {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			r := c.on(h)
			n := r.kernel(kernels.Plain)
			h.run(n.EvoForward()...)
			want := make([]float32, len(r.x))
			onCPUCall(t, device.EvoNorm, r.dims, 1e-3, [][]float32{r.x, r.gamma, r.beta, r.v},
				[][]float32{want, r.wantMean, r.wantSquare})
			r.closeTo(t, "y", r.y, want)
			r.nearVectors(t, "mean", r.mean, r.wantMean)
			r.nearVectors(t, "variance", r.variance, r.wantSquare)
			h.run(n.EvoGrad()...)
			dx, dgamma, dbeta, dv := make([]float32, len(r.x)), make([]float32, c.c), make([]float32,
				c.c), make([]float32, c.c)
			onCPUCall(t, device.EvoNormGrad, r.dims, 1e-3, [][]float32{r.x, r.dy, r.gamma, r.v, r.mean, r.variance},
				[][]float32{dx, dgamma, dbeta, dv})
			r.closeTo(t, "dx", r.dx, dx)
			r.nearVectors(t, "dgamma", r.dgamma, dgamma)
			r.nearVectors(t, "dbeta", r.dbeta, dbeta)
			r.nearVectors(t, "dv", r.dv, dv)
		})
	}
}
