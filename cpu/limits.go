package cpu

import (
	"time"

	"fspda/cpu/gemm"
	"fspda/cpu/vec"
)

// Peak measures the multiply-adds of one core in GFLOP/s during a time of d. See [gemm.Peak].
func Peak(d time.Duration) float64 { return gemm.Peak(d) }

// Traffic measures how fast one core reads and writes long vectors, in GB/s. See [vec.Bandwidth].
func Traffic(v [][]float32, reads int) float64 { return vec.Bandwidth(v, reads) }
