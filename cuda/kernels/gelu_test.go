package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"fspda/cuda/kernels"
)

// curves holds the forms of GELU and their derivatives.
var curves = map[kernels.GELUForm]struct{ of, slope func(x float64) float64 }{
	kernels.GELUErf: {
		func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 },
		func(x float64) float64 {
			return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		}},
	kernels.GELUTanh: {
		func(x float64) float64 { return x * logistic(twiceTanh*(x+0.044715*x*x*x)) },
		func(x float64) float64 {
			s := logistic(twiceTanh * (x + 0.044715*x*x*x))
			return s + x*s*(1-s)*twiceTanh*(1+3*0.044715*x*x)
		}},
}

const twiceTanh = 1.5957691216057308 // 2·√(2/π)

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// GELU, its gradient, GELU after a bias, SwiGLU and its gradient equal float64 up to the
// rounding of the result, for sizes of several blocks that are no multiple of a pack.
func TestCurves(t *testing.T) {
	h := onHost(t)
	const m, n = 37, 101
	bias := numbers(3, n)
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		raw, x := encode(h, e, numbers(1, m*n))
		rawDY, dy := encode(h, e, numbers(2, m*n))
		check := func(what string, got []byte, want func(i int) float64) {
			t.Helper()
			for i, g := range decode(h, e, got) {
				if w := want(i); !(math.Abs(float64(g)-w) <= 2*unit(e)*math.Abs(w)+unit(e)/64) {
					t.Fatalf("%s of %v: number %d is %v, want %v", what, e, i, g, w)
				}
			}
		}
		for form, curve := range curves {
			name := func(what string) string { return fmt.Sprintf("%s in form %d", what, form) }
			y, rawX := make([]byte, len(raw)), at(h, raw)
			h.run(kernels.GELU(e, form, at(h, y), rawX, m*n))
			check(name("GELU"), y, func(i int) float64 { return curve.of(float64(x[i])) })
			h.run(kernels.GELUGrad(e, form, at(h, y), rawX, at(h, rawDY), m*n))
			check(name("its gradient"), y, func(i int) float64 { return float64(dy[i]) * curve.slope(float64(x[i])) })
			z, atZ := copied(h, raw)
			h.run(kernels.BiasGELU(e, form, at(h, y), atZ, at(h, bias), m, n))
			sums := decode(h, e, z)
			check(name("the sum with a bias"), z, func(i int) float64 { return float64(x[i]) + float64(bias[i%n]) })
			check(name("GELU after a bias"), y, func(i int) float64 { return curve.of(float64(sums[i])) })
		}
		const f = n / 2 // rows of f numbers g and f numbers u; a number of the last row is left over
		at2 := func(i int) (g, u float64) { return float64(x[i/f*2*f+i%f]), float64(x[i/f*2*f+f+i%f]) }
		y, d := make([]byte, m*f*e.Size()), make([]byte, 2*m*f*e.Size())
		h.run(kernels.SwiGLU(e, at(h, y), at(h, raw), m, f))
		check("SwiGLU", y, func(i int) float64 { g, u := at2(i); return g * logistic(g) * u })
		h.run(kernels.SwiGLUGrad(e, at(h, d), at(h, raw), at(h, rawDY), m, f))
		check("the gradient of SwiGLU", d, func(j int) float64 {
			i := j/(2*f)*f + j%f
			g, u := at2(i)
			s := logistic(g)
			if j%(2*f) < f {
				return float64(dy[i]) * u * s * (1 + g*(1-s))
			}
			return float64(dy[i]) * g * s
		})
	}
}
