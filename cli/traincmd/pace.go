package traincmd

import "time"

// pace estimates the time that a run has left. It knows evaluations: the time of an iteration is
// that between two rows, evaluations included, smoothed over rows.
type pace struct {
	total   int
	each    float64 // seconds of an iteration; 0: not known
	at      int     // iteration of the latest row
	atTime  float64 // its time since the start, in seconds
	started bool    // a row was seen
}

// newestShare is the weight of the latest row in the smoothed time of an iteration.
const newestShare = 0.3

// expect sets the estimate before the first rows: so many iterations are left, and take so long.
func (p *pace) expect(left int, took time.Duration) {
	if left > 0 {
		p.each = took.Seconds() / float64(left)
	}
}

// row takes the time of a row.
func (p *pace) row(iteration int, seconds float64) {
	if k := iteration - p.at; p.started && k > 0 && seconds > p.atTime {
		each := (seconds - p.atTime) / float64(k)
		if p.each == 0 {
			p.each = each
		}
		p.each += newestShare * (each - p.each)
	}
	p.at, p.atTime, p.started = iteration, seconds, true
}

// left estimates the seconds from an iteration to the end; 0: not known.
func (p *pace) left(iteration int) float64 { return float64(p.total-iteration) * p.each }
