package tile

import "time"

const peakChains = 14

// Peak measures the multiply-adds of one core for d, in registers, and returns floating-point
// operations a second; 0 without assembly.
func Peak(d time.Duration) float64 {
	s := Active()
	if s == nil {
		return 0
	}
	return s.Peak(d)
}

// Peak measures the multiply-adds of one core in GFLOP/s during a time of d, with the instructions
// of this set and without access to memory.
func (s *Set) Peak(d time.Duration) float64 {
	const times = 2000 // about 4 µs
	loops := 0
	for begin := time.Now(); ; {
		s.peak(1e-3, times)
		loops++
		if took := time.Since(begin); took >= d && took > 0 {
			return 2 * times * peakChains * float64(s.Lanes) * float64(loops) / float64(took.Nanoseconds())
		}
	}
}
