package gemm

import (
	"time"

	"fspda/cpu/tile"
)

// Peak measures the multiply-adds of one core without access to memory, in GFLOP/s (two operations
// each), during a time of d: no matrix product that takes as long exceeds it. A core runs faster
// for some microseconds than for long, so compare a kernel with a time of its own length. It uses
// the widest instructions that products use. Without assembly it returns the rate of a product in
// the first-level cache. The result varies with the clock rate: use it for reports only.
func Peak(d time.Duration) float64 {
	if p := tile.Peak(d); p > 0 {
		return p
	}
	return rate(32, 32, 64, d)
}
