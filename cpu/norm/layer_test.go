package norm

import (
	"math"
	"testing"

	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// treeSum adds numbers to partial sums in turn, and those as a tree.
func treeSum(partial int, numbers []float64) float64 {
	sums := make([]float64, partial)
	for j, v := range numbers {
		sums[j%partial] += v
	}
	for half := partial / 2; half > 0; half /= 2 {
		for l := range half {
			sums[l] += sums[l+half]
		}
	}
	return sums[0]
}

// each returns f of 0 to n-1.
func each(n int, f func(j int) float64) []float64 {
	v := make([]float64, n)
	for j := range v {
		v[j] = f(j)
	}
	return v
}

// Layer and RMS norms have the bits of their definition, for any number of rows and columns. The
// code computes blocks of rows, whose size depends on the columns. The sums for gamma and beta are
// over blocks of 64 rows.
func TestLayerNormIsDefined(t *testing.T) {
	const eps = 1e-5
	for _, shape := range [][2]int{{1, 1}, {1, 37}, {3, 16}, {7, 128}, {65, 100}, {130, 8}, {67, 513}, {9, 1024},
		{5, 1500}} {
		m, c := shape[0], shape[1]
		n := float64(c)
		x, d, gamma, beta := kerneltest.Noise("x", m*c), kerneltest.Noise("d", m*c), kerneltest.Noise("gamma", c),
			kerneltest.Noise("beta", c)
		dy, add := kerneltest.Noise("dy", m*c), kerneltest.Noise("add", m*c)
		rows := func(v []float32, r int) []float32 { return v[r*c:][:c] }
		numbers := func(counts ...int) (out [][]float32) {
			for _, n := range counts {
				out = append(out, make([]float32, n))
			}
			return out
		}
		call := func(k device.Kernel, in [][]float32, out ...int) [][]float32 {
			results, one := numbers(out...), device.Call{Kernel: k, Dims: []int{m, c}, Attr: eps}
			if err := LayerKernels.Call(&one, in, results); err != nil {
				t.Fatal(err)
			}
			return results
		}
		same := func(what string, got []float32, want func(i int) float64) {
			t.Helper()
			for i, v := range got {
				if w := float32(want(i)); math.Float32bits(v) != math.Float32bits(w) {
					t.Fatalf("%d rows of %d, %s: number %d is %v, want %v", m, c, what, i, v, w)
				}
			}
		}

		sum := each(m*c, func(i int) float64 { return float64(x[i] + d[i]) })
		for _, rms := range []bool{false, true} {
			var means, rstds []float64
			for r := range m {
				row, mean := sum[r*c:][:c], 0.0
				if !rms {
					mean = treeSum(16, row) / n
				}
				off := each(c, func(j int) float64 { return row[j] - mean })
				squares := treeSum(16, each(c, func(j int) float64 { return float64(off[j] * off[j]) }))
				means, rstds = append(means, mean), append(rstds, 1/math.Sqrt(squares/n+eps))
			}
			normal := func(i int) float64 {
				return float64(float64((sum[i]-means[i/c])*rstds[i/c]) * float64(gamma[i%c]))
			}
			var forward [][]float32
			if rms {
				forward = append([][]float32{nil}, call(device.RMSNorm, [][]float32{single(sum), gamma}, m*c, m)...)
				same("rms", forward[1], normal)
				forward = [][]float32{nil, forward[1], nil, forward[2]}
			} else {
				plain := call(device.LayerNormPlain, [][]float32{single(sum), gamma}, m*c, m, m)
				same("without beta", plain[0], normal)
				forward = call(device.AddLayerNorm, [][]float32{x, d, gamma, beta}, m*c, m*c, m, m)
				same("sum", forward[0], func(i int) float64 { return sum[i] })
				same("y", forward[1], func(i int) float64 { return normal(i) + float64(beta[i%c]) })
				same("mean", forward[2], func(r int) float64 { return means[r] })
			}
			same("rstd", forward[3], func(r int) float64 { return rstds[r] })

			dgamma, dbeta, dx := make([]float64, c), make([]float64, c), make([]float64, m*c)
			blockGamma, blockBeta := make([]float64, c), make([]float64, c)
			for r := range m {
				mean, rstd, row, slope := 0.0, float64(forward[3][r]), sum[r*c:][:c], rows(dy, r)
				if !rms {
					mean = float64(forward[2][r])
				}
				off := each(c, func(j int) float64 { return row[j] - mean })
				g := each(c, func(j int) float64 { return float64(float64(gamma[j]) * float64(slope[j])) })
				along := treeSum(8, each(c, func(j int) float64 { return float64(g[j] * off[j]) }))
				a, delta := 0.0, 0.0
				if !rms {
					a, delta = treeSum(8, g)/n, treeSum(8, off)/n
				}
				b := (along/n - float64(delta*a)) * rstd
				for j := range c {
					normal := float64((off[j] - delta) * rstd)
					dx[r*c+j] = float64((g[j] - a - float64(normal*b)) * rstd)
					blockGamma[j] += float64(float64(slope[j]) * normal)
					blockBeta[j] += float64(slope[j])
				}
				if (r+1)%64 == 0 || r+1 == m {
					for j := range c {
						dgamma[j] += blockGamma[j]
						dbeta[j] += blockBeta[j]
					}
					clear(blockGamma)
					clear(blockBeta)
				}
			}
			if rms {
				got := call(device.RMSNormGrad, [][]float32{single(sum), dy, gamma, forward[3]}, m*c, c)
				same("dx of rms", got[0], func(i int) float64 { return dx[i] })
				same("dgamma of rms", got[1], func(j int) float64 { return dgamma[j] })
				continue
			}
			in := [][]float32{single(sum), dy, gamma, forward[2], forward[3]}
			got := call(device.LayerNormGrad, in, m*c, c, c)
			same("dx", got[0], func(i int) float64 { return dx[i] })
			same("dgamma", got[1], func(j int) float64 { return dgamma[j] })
			same("dbeta", got[2], func(j int) float64 { return dbeta[j] })
			got = call(device.LayerNormGradAdd, append(in, add), m*c, c, c)
			same("dx and what is added", got[0], func(i int) float64 { return float64(float32(dx[i]) + add[i]) })
		}
	}
}

// single rounds numbers to float32.
func single(v []float64) []float32 {
	w := make([]float32, len(v))
	for i, x := range v {
		w[i] = float32(x)
	}
	return w
}
