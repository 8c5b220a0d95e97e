package kerneltest

import (
	"fmt"
	"math"

	"fspda/cuda/kernels"
)

// roundedTo rounds v to an element; F32 stands for TF32 with 10 bits of mantissa.
func roundedTo(e kernels.Element, v float32) float64 {
	if e == kernels.F32 && v == v {
		return float64(math.Float32frombits((math.Float32bits(v) + 0x1000) &^ 0x1fff))
	}
	return float64(load(e, store(e, v)))
}

// tensorProducts compares products of tensor cores with products of rounded factors, in every form
// and precision: a number in the wrong place of a fragment would show. GPUs below 8.0 use float32
// for TF32.
func tensorProducts(b *fixture) {
	const m, n, k = 70, 66, 50
	x, y := numbers(1, m*k), numbers(2, n*k)
	for form, at3 := range map[string]func(i, j, p int) (int, int){
		"nt": func(i, j, p int) (int, int) { return i*k + p, j*k + p },
		"nn": func(i, j, p int) (int, int) { return i*k + p, p*n + j },
		"tn": func(i, j, p int) (int, int) { return p*m + i, p*n + j },
	} {
		for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
			c := make([]float32, m*n)
			b.run(kernels.Gemm{Agents: 1, M: m, N: n, K: k, Form: form, A: kernels.Operand{At: at(b, x)},
				B: kernels.Operand{At: at(b, y)}, C: kernels.Operand{At: at(b, c)},
				Element: e, TF32: e == kernels.F32}.Call())
			factor := func(v float32) float64 { return roundedTo(e, v) }
			bound := 0x1p-22 * (k + 2) // tensor cores may truncate where others round
			if e == kernels.F32 {
				bound += 0x1p-10 // or may not round the factors
			}
			if wrong := firstFar(c, m, n, k, bound, func(i, j, p int) float64 {
				l, r := at3(i, j, p)
				return factor(x[l]) * factor(y[r])
			}); wrong != "" {
				b.Errorf("products of form %s in %v are wrong: %s", form, e, wrong)
			}
		}
	}
}

// divergence checks that a factor that is not finite makes every sum of its row not finite: NaN, of
// any bits, or an infinity that the other factors do not cancel. GPUs write NaN as 0x7fffffff.
func divergence(b *fixture) {
	const m, n, k = 20, 9, 24
	for _, bits := range []uint32{0x7fffffff, 0xffffffff, 0x7f800001, 0x7fc00000, 0x7f800000, 0xff800000} {
		bad := math.Float32frombits(bits)
		for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
			for side := range 2 {
				x, y, c := numbers(1, m*k), numbers(2, n*k), make([]float32, m*n)
				[][]float32{x, y}[side][3*k+5] = bad
				b.run(kernels.Gemm{Agents: 1, M: m, N: n, K: k, Form: "nt", A: kernels.Operand{At: at(b, x)},
					B: kernels.Operand{At: at(b, y)}, C: kernels.Operand{At: at(b, c)},
					Element: e, TF32: e == kernels.F32}.Call())
				for i, got := range c {
					hit := []int{i / n, i % n}[side] == 3
					finite := !math.IsNaN(float64(got)) && !math.IsInf(float64(got), 0)
					if hit == finite || hit && bad != bad && got == got {
						b.Errorf("%v: element %d of a product with a factor of bits %#x is %v", e, i, bits, got)
						return
					}
				}
			}
		}
	}
}

// firstFar describes the first element of C, m×n, that is further from the sum of its k products
// than bound times the sum of their absolute values, and counts such elements. It is empty where
// there is none.
func firstFar(c []float32, m, n, k int, bound float64, product func(i, j, p int) float64) (text string) {
	far := 0
	for i := range m {
		for j := range n {
			want, size := 0.0, 0.0
			for p := range k {
				v := product(i, j, p)
				want, size = want+v, size+math.Abs(v)
			}
			if math.Abs(float64(c[i*n+j])-want) <= bound*size {
				continue
			}
			if far++; far == 1 {
				text = fmt.Sprintf("element %d, %d is %v, want %v within %.2g", i, j, c[i*n+j], want, bound*size)
			}
		}
	}
	if far > 1 {
		text += fmt.Sprintf(", as the first of %d of %d", far, m*n)
	}
	return text
}
