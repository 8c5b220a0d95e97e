//go:build !noasm

package cpu

import "time"

// peakLoops do, for an instruction set, so many times one multiply-add in each of peakChains
// registers that do not wait for each other.
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
	const times = 2000 // some 4 µs
	loop, loops := peakLoops[s.name], 0
	for begin := time.Now(); ; {
		loop(1e-3, times)
		loops++
		if took := time.Since(begin); took >= d && took > 0 {
			return 2 * times * peakChains * float64(s.lanes) * float64(loops) / float64(took.Nanoseconds())
		}
	}
}
