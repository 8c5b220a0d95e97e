package train

import (
	"math"
	"sort"

	"fspda/data"
)

// perEpoch is the number of iterations in which an agent of mean shard size sees its shard once.
func (s *Setup) perEpoch() float64 {
	if s.Config.Sampling == string(data.Full) {
		return 1
	}
	total := 0
	for _, shard := range s.Shards {
		total += len(shard)
	}
	return math.Ceil(float64(total) / float64(len(s.Shards)) / float64(s.Config.Batch))
}

// Epochs is the number of local epochs before iteration t.
func (s *Setup) Epochs(t int) float64 { return float64(t) / s.perEpoch() }

// settleEpochs turns epochs into iterations and evaluations. Of two keys that say one thing the
// other may stand at its default, or at what comes out, as in a resolved configuration.
func (s *Setup) settleEpochs() error {
	c, base := &s.Config, Default()
	if c.Epochs > 0 {
		t := math.Round(c.Epochs * s.perEpoch())
		switch {
		case t < 1 || t > math.MaxInt32:
			return wrong("epochs", c.Epochs,
				"an epoch has %.4g iterations (batch %d), which makes %.4g of them: expected 1 to %d", s.perEpoch(), c.Batch, t, math.MaxInt32)
		case c.Iterations != base.Iterations && c.Iterations != int(t):
			return wrong("iterations", c.Iterations, "epochs %v says %v of them: leave one of the two out", c.Epochs, t)
		}
		c.Iterations = int(t)
	}
	if c.EvalEpochs == 0 {
		return nil
	}
	if c.EvalEpochs*s.perEpoch() < 1 {
		return wrong("eval_epochs", c.EvalEpochs,
			"an epoch has %.4g iterations: expected at least %.4g, which evaluates every iteration", s.perEpoch(), 1/s.perEpoch())
	}
	points := int(math.Ceil(float64(c.Iterations)/(c.EvalEpochs*s.perEpoch()) - 1e-9))
	if c.EvalPoints != base.EvalPoints && c.EvalPoints != points {
		return wrong("eval_points", c.EvalPoints, "eval_epochs %v makes %d of them: leave one of the two out",
			c.EvalEpochs, points)
	}
	c.EvalPoints = points
	s.evalEvery = c.EvalEpochs * s.perEpoch()
	return nil
}

// EvalAt tells whether iteration t is evaluated: those are 0, T/P, 2T/P, ..., T, or one in so many
// epochs and T, rounded.
func (s *Setup) EvalAt(t int) bool {
	k := s.evalsBefore(t)
	return !s.blind && k <= s.points() && s.evalPoint(k) == t
}

// evalsBefore is the number of evaluations before iteration t.
func (s *Setup) evalsBefore(t int) int {
	return sort.Search(s.points()+1, func(k int) bool { return s.evalPoint(k) >= t })
}

// evalPoint is the iteration of evaluation k. It is computed and not listed: there may be as many
// as iterations.
func (s *Setup) evalPoint(k int) int {
	if k == s.points() {
		return s.Config.Iterations
	}
	if s.evalEvery > 0 {
		return int(math.Round(float64(k) * s.evalEvery))
	}
	return int(math.Round(float64(k) * float64(s.Config.Iterations) / float64(s.points())))
}

// points is P, the number of evaluations after the first one.
func (s *Setup) points() int { return min(s.Config.EvalPoints, s.Config.Iterations) }
