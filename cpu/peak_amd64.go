//go:build !noasm

package cpu

import (
	"math"
	"time"
)

// peakLoops do, for an instruction set, so many times one multiply-add in each of peakChains registers that do not wait for each other.
var peakLoops = map[string]func(x float32, times int){"avx512": peakAVX512, "avx2": peakAVX2}

const peakChains = 14

func peak(d time.Duration) float64 {
	if len(tileSets) == 0 {
		return ratePeak(d)
	}
	return tileSets[0].peak(d)
}

// peak is Peak with the instructions of this set.
func (s *tileSet) peak(d time.Duration) float64 {
	const times = 10000 // some 20 µs
	loop, fastest := peakLoops[s.name], time.Duration(math.MaxInt64)
	for begin, rounds := time.Now(), 0; rounds < 3 || time.Since(begin) < d; rounds++ {
		start := time.Now()
		loop(1e-3, times)
		fastest = min(fastest, max(1, time.Since(start)))
	}
	return 2 * times * peakChains * float64(s.lanes) / float64(fastest.Nanoseconds())
}
