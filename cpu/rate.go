package cpu

import (
	"time"

	"fspda/internal/rng"
)

// Rate measures the speed of this machine's matrix product C = A·B, C m×n, A m×k, B k×n, on one core, in GFLOP/s (2mnk
// operations a product). It repeats the product for at least d, and at least once after one to warm up. The factors are random,
// since zeros would be skipped. It is the yardstick for what a training step could reach; the result depends on the clock
// and is for people only.
func Rate(m, n, k int, d time.Duration) float64 {
	if m < 1 || n < 1 || k < 1 {
		panic("cpu: Rate of an empty product")
	}
	a, b, c := noise("a", m*k), noise("b", k*n), make([]float32, m*n)
	product := func() { gemm(false, false, m, n, k, 1, a, k, b, n, 0, c, n) }
	product()
	begin, runs := time.Now(), 0
	for runs == 0 || time.Since(begin) < d {
		product()
		runs++
	}
	return 2 * float64(m) * float64(n) * float64(k) * float64(runs) / float64(time.Since(begin).Nanoseconds())
}

// noise returns n numbers uniform in [-1,1), none of them zero.
func noise(name string, n int) []float32 {
	s, v := rng.New(0, "rate "+name), make([]float32, n)
	for i := range v {
		for v[i] == 0 {
			v[i] = 2*s.Float32() - 1
		}
	}
	return v
}
