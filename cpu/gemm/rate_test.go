package gemm

import (
	"math"
	"testing"
	"time"

	"fspda/internal/testing/kerneltest"
)

// The rate is that of a product timed here, within a factor that no busy machine explains.
func TestRate(t *testing.T) {
	const m, n, k = 64, 64, 256
	got := rate(m, n, k, 20*time.Millisecond)
	a, b, c := kerneltest.Noise("a", m*k), kerneltest.Noise("b", k*n), make([]float32, m*n)
	best := math.Inf(1)
	for range 200 {
		begin := time.Now()
		Multiply(false, false, m, n, k, 1, a, k, b, n, 0, c, n)
		best = min(best, float64(time.Since(begin).Nanoseconds()))
	}
	fastest := 2 * m * n * k / best
	if got > 4*fastest || got < fastest/50 { // other layouts may be faster
		t.Errorf("rate %v GFLOP/s, the fastest of 200 products had %v", got, fastest)
	}
}

func TestRateRefusesNothing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("rate(0, 1, 1) did not panic")
		}
	}()
	rate(0, 1, 1, 0)
}
