package gemm

import (
	"math"
	"time"

	"fspda/cpu/kernel"
	"fspda/internal/rng"
)

// rate measures the speed of the product C = op(A)·op(B), C m×n, inner length k, on one core, in
// GFLOP/s (2mnk operations a product). It repeats the layouts A·B, A·Bᵀ and Aᵀ·B for at least d,
// and returns the rate of the fastest product. It stands for the peak of a machine whose products
// are in Go. The operands are random, since a processor may spend less power on zeros and run
// faster.
func rate(m, n, k int, d time.Duration) float64 {
	if m < 1 || n < 1 || k < 1 {
		panic("cpu: gemm: rate of an empty product")
	}
	a, b, c := random("a", m*k), random("b", k*n), kernel.Aligned(m*n)
	layouts := []func(){
		func() { Multiply(false, false, m, n, k, 1, a, k, b, n, 0, c, n) },
		func() { Multiply(false, true, m, n, k, 1, a, k, b, k, 0, c, n) },
		func() { Multiply(true, false, m, n, k, 1, a, m, b, n, 0, c, n) },
	}
	// Small products are timed together, so that the cost of the clock stays below a percent.
	repeat := 1 + int(2e6/(2*float64(m)*float64(n)*float64(k)))
	fastest := time.Duration(math.MaxInt64)
	for begin, rounds := time.Now(), 0; rounds < 2 || time.Since(begin) < d; rounds++ {
		for _, product := range layouts {
			start := time.Now()
			for range repeat {
				product()
			}
			fastest = min(fastest, max(1, time.Since(start)))
		}
	}
	return 2 * float64(m) * float64(n) * float64(k) * float64(repeat) / float64(fastest.Nanoseconds())
}

// random returns n numbers uniform in [-1,1).
func random(name string, n int) []float32 {
	s, v := rng.New(0, "rate "+name), kernel.Aligned(n)
	for i := range v {
		v[i] = 2*s.Float32() - 1
	}
	return v
}
