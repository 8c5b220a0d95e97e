package gemm

import (
	"time"

	"fspda/cpu/tile"
)

// Peak measures the multiply-adds of one core that wait for no memory, in GFLOP/s (two operations
// each), over a stretch of d: what no product of matrices that takes as long exceeds. A core runs
// faster for some microseconds than it can for long, so a kernel is to be held against a stretch of
// its own length. It uses the widest instructions this package does. Where the package has no
// assembly it returns the rate of a product that lies in the first cache. The result depends on the
// clock and is for people only.
func Peak(d time.Duration) float64 {
	if p := tile.Peak(d); p > 0 {
		return p
	}
	return rate(32, 32, 64, d)
}
