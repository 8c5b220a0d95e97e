package vec

import (
	"math"
	"time"
)

// bandwidthStep divides the lengths of vectors for Bandwidth.
const bandwidthStep = 64

// bandwidthPrefetch are the prefetch distances that Bandwidth tries, in numbers.
var bandwidthPrefetch = []int{128, 256, 512}

// Bandwidth measures how fast one core reads and writes long vectors together if it does nothing
// else, in GB/s over all of them: v are the vectors to read, at least one, and after them those to
// write. They have one length, at least 64, and begin at a cache line, as a Device's do. A core
// waits for a limited number of cache lines that it reads, while non-temporal stores go on: so the
// rate depends on the numbers of both, and a copy is only one case. The result is the best of
// several prefetch distances; use it for reports only.
func Bandwidth(v [][]float32, reads int) float64 {
	n, best := len(v[0])&^(bandwidthStep-1), 0.0
	for _, ahead := range bandwidthPrefetch {
		begin := time.Now()
		bandwidth(v, reads, n, ahead)
		best = max(best, float64(4*len(v)*n)/float64(max(1, time.Since(begin).Nanoseconds())))
	}
	return best
}

// bandwidthGo writes the bits that any of the vectors to read has to the others.
func bandwidthGo(v [][]float32, reads, n int) {
	for i := range n {
		bits := uint32(0)
		for _, x := range v[:reads] {
			bits |= math.Float32bits(x[i])
		}
		for _, x := range v[reads:] {
			x[i] = math.Float32frombits(bits)
		}
	}
}
