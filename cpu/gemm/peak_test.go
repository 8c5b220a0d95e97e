package gemm

import (
	"testing"
	"time"

	"fspda/cpu/isa"
)

// No product is faster than the peak, within the noise of a busy machine, and a large one comes
// near it.
func TestPeak(t *testing.T) {
	const rounds = 20
	best, product := 0.0, 0.0
	for range rounds {
		best = max(best, Peak(2*time.Millisecond))
		product = max(product, rate(96, 96, 384, 2*time.Millisecond))
	}
	if best <= 0 || product > 1.5*best {
		t.Errorf("peak %v GFLOP/s, a product has %v", best, product)
	}
	if isa.Active != isa.Go && product < best/10 {
		t.Errorf("a product has %v GFLOP/s of a peak of %v", product, best)
	}
}
