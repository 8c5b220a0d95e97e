package train

import (
	"math"
	"sort"

	"fspda/data"
)

// PerEpoch is the number of iterations in which an agent of mean shard size sees its shard once.
func (s *Setup) PerEpoch() float64 {
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
func (s *Setup) Epochs(t int) float64 { return float64(t) / s.PerEpoch() }

// settleEpochs turns epochs into iterations and evaluations. Of two keys that say one thing the
// other may stand at its default, or at what comes out, as in a resolved configuration.
func (s *Setup) settleEpochs() error {
	c, base := &s.Config, Default()
	if c.Epochs > 0 {
		t := math.Round(c.Epochs * s.PerEpoch())
		switch {
		case t < 1 || t > math.MaxInt32:
			return wrong("epochs", c.Epochs,
				"an epoch has %.4g iterations (batch %d), which makes %.4g of them: expected 1 to %d", s.PerEpoch(), c.Batch, t, math.MaxInt32)
		case c.Iterations != base.Iterations && c.Iterations != int(t):
			return wrong("iterations", c.Iterations, "epochs %v says %v of them: leave one of the two out", c.Epochs, t)
		}
		c.Iterations = int(t)
	}
	if c.EvalEpochs == 0 {
		return nil
	}
	if c.EvalEpochs*s.PerEpoch() < 1 {
		return wrong("eval_epochs", c.EvalEpochs,
			"an epoch has %.4g iterations: expected at least %.4g, which evaluates every iteration", s.PerEpoch(), 1/s.PerEpoch())
	}
	points := int(math.Ceil(float64(c.Iterations)/(c.EvalEpochs*s.PerEpoch()) - 1e-9))
	if c.EvalPoints != base.EvalPoints && c.EvalPoints != points {
		return wrong("eval_points", c.EvalPoints, "eval_epochs %v makes %d of them: leave one of the two out",
			c.EvalEpochs, points)
	}
	c.EvalPoints = points
	s.evalEvery = c.EvalEpochs * s.PerEpoch()
	return nil
}

// EvalAt tells whether iteration t is evaluated: those are 0, T/P, 2T/P, ..., T, or one in so many
// epochs and T, rounded.
func (s *Setup) EvalAt(t int) bool {
	k := s.EvalsBefore(t)
	return !s.blind && k <= s.EvalCount() && s.EvalPoint(k) == t
}

// EvalsBefore is the number of evaluations before iteration t.
func (s *Setup) EvalsBefore(t int) int {
	return sort.Search(s.EvalCount()+1, func(k int) bool { return s.EvalPoint(k) >= t })
}

// EvalPoint is the iteration of evaluation k. It is computed and not listed: there may be as many
// as iterations.
func (s *Setup) EvalPoint(k int) int {
	if k == s.EvalCount() {
		return s.Config.Iterations
	}
	if s.evalEvery > 0 {
		return int(math.Round(float64(k) * s.evalEvery))
	}
	return int(math.Round(float64(k) * float64(s.Config.Iterations) / float64(s.EvalCount())))
}

// EvalCount is P, the number of evaluations after the first one.
func (s *Setup) EvalCount() int { return min(s.Config.EvalPoints, s.Config.Iterations) }
