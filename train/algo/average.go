package algo

import "fspda/device"

// Average is an average of the weights of an agent over its iterations, in place of which the mean
// model is evaluated. It is never sent, and no step depends on it. After iteration k, counted from
// 1, it moves a share of the way to the model x,
//
//	e ← (1-share)·e + share·x            e = x at the start
//
// The zero value is the mean of the models of all iterations.
type Average struct {
	// Decay is the factor of the average in an exponential one: share = 1 - min(Decay, (1+k)/(10+k)),
	// so that it follows a short run. It is 0 in a tail average, which is the mean of the models after
	// iteration After.
	Decay float64
	After int
}

// AverageName is the name of the average among the vectors of an agent.
const AverageName = "average"

// share returns the share of the way that the average moves after iteration k.
func (a Average) share(k int) float64 {
	switch {
	case a.Decay > 0:
		return 1 - min(a.Decay, float64(1+k)/float64(10+k))
	case k > a.After:
		return 1 / float64(k-a.After)
	default: // until then the average is the model
		return 1
	}
}

// Averaged is an algorithm whose agents also keep an average of their weights. It leaves trajectory
// and messages of the algorithm alone, to the bit.
type Averaged struct {
	Algorithm
	Average Averaging
}

// Averaging is a way to average the weights of an agent.
type Averaging interface {
	// follow moves the average of an agent after an iteration, in which its model has moved.
	follow(s *State, r *Round)
}

var (
	_ Algorithm = Averaged{}
	_ Averaging = Average{}
)

func (a Averaged) Traits() Traits {
	t := a.Algorithm.Traits()
	t.Averages = true
	return t
}

func (a Averaged) Mix(s *State, r *Round) error {
	if err := a.Algorithm.Mix(s, r); err != nil {
		return err
	}
	a.Average.follow(s, r)
	return nil
}

func (a Average) follow(s *State, r *Round) {
	share := a.share(r.T + 1)
	if share == 1 {
		s.copy(s.average, s.X)
		return
	}
	s.combine(s.average, device.Term{A: 1 - share, V: s.average}, device.Term{A: share, V: s.X})
}

// last is the last vector of the algorithm's own, before the vectors of its optimizer.
func (s *State) last() device.Vector { return s.Aux[s.own-1] }
