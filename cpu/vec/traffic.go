package vec

import (
	"math"
	"time"
)

// trafficStep is what the lengths of vectors for Traffic are multiples of.
const bandwidthStep = 64

// trafficAhead are the numbers ahead of their turn at which lines are asked for, one after the
// other.
var bandwidthPrefetch = []int{128, 256, 512}

// Traffic measures how fast one core reads and writes long vectors side by side where it does
// nothing else with them, in GB/s over all of them: v are the vectors to read, at least one, and
// after them those to write. They have one length, at least 64, and begin with a cache line, as a
// Device's do. A core waits for a limited number of lines that it reads, and what it writes past
// the caches leaves meanwhile: so the rate depends on the mix, and a copy is one of many. It is the
// best of some ways to ask for lines ahead, and for people only.
func Bandwidth(v [][]float32, reads int) float64 {
	n, best := len(v[0])&^(bandwidthStep-1), 0.0
	for _, ahead := range bandwidthPrefetch {
		begin := time.Now()
		bandwidth(v, reads, n, ahead)
		best = max(best, float64(4*len(v)*n)/float64(max(1, time.Since(begin).Nanoseconds())))
	}
	return best
}

// trafficGo writes the bits that any of the vectors to read has to the others.
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
