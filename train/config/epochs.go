package config

import (
	"math"
	"sort"

	"fspda/data"
)

// PerEpoch returns the number of iterations in which an agent with a shard of mean size sees its
// shard once.
func (s *Setup) PerEpoch() float64 {
	if s.Config.Sampling == string(data.Full) {
		return 1
	}
	return math.Ceil(s.meanShard() / float64(s.Config.Batch))
}

// meanShard returns the mean number of examples of a shard.
func (s *Setup) meanShard() float64 {
	total := 0
	for _, shard := range s.Shards {
		total += len(shard)
	}
	return float64(total) / float64(len(s.Shards))
}

// Epochs returns the number of local epochs before iteration t.
func (s *Setup) Epochs(t int) float64 { return float64(t) / s.PerEpoch() }

// settleEpochs converts epochs and eval_epochs to iterations and eval_points. The converted key
// must have its default, or the value that results, as in a resolved configuration.
func (s *Setup) settleEpochs() error {
	c, base := &s.Config, s.Config.given.Defaults()
	if c.Epochs > 0 {
		t := math.Round(c.Epochs * s.PerEpoch())
		switch {
		case t < 1 || t > math.MaxInt32:
			return Invalid("epochs", c.Epochs, "an epoch has %.4g iterations (batch %d), which makes %.4g of them: "+
				"expected 1 to %d", s.PerEpoch(), c.Batch, t, math.MaxInt32)
		case c.Iterations != base.Iterations && c.Iterations != int(t):
			return Invalid("iterations", c.Iterations, "epochs %v says %v of them: leave one of the two out", c.Epochs,
				t)
		}
		c.Iterations = int(t)
	}
	if c.EvalEpochs == 0 {
		return nil
	}
	if c.EvalEpochs*s.PerEpoch() < 1 {
		return Invalid("eval_epochs", c.EvalEpochs, "an epoch has %.4g iterations: expected at least %.4g, which "+
			"evaluates every iteration", s.PerEpoch(), 1/s.PerEpoch())
	}
	s.evals.every = min(c.EvalEpochs*s.PerEpoch(), math.MaxInt32)
	points := s.evals.points(c.Iterations)
	if c.EvalPoints != base.EvalPoints && c.EvalPoints != points {
		return Invalid("eval_points", c.EvalPoints, "eval_epochs %v makes %d of them: leave one of the two out",
			c.EvalEpochs, points)
	}
	c.EvalPoints = points
	return nil
}

// EvalAt reports whether iteration t is evaluated. Evaluated are 0, T/P, 2T/P, ..., T, or with
// eval_epochs one iteration every eval_epochs epochs and T, all rounded.
func (s *Setup) EvalAt(t int) bool {
	k := s.EvalsBefore(t)
	return !s.evals.off && k <= s.EvalCount() && s.EvalPoint(k) == t
}

// EvalsBefore returns the number of evaluations before iteration t.
func (s *Setup) EvalsBefore(t int) int {
	return sort.Search(s.EvalCount()+1, func(k int) bool { return s.EvalPoint(k) >= t })
}

// EvalPoint returns the iteration of evaluation k. Evaluations are not listed, because there may be
// as many as iterations.
func (s *Setup) EvalPoint(k int) int {
	if k == s.EvalCount() {
		return s.Config.Iterations
	}
	if s.evals.every > 0 {
		return s.evals.at(k)
	}
	return int(math.Round(float64(k) * float64(s.Config.Iterations) / float64(s.EvalCount())))
}

// EvalCount returns P, the number of evaluations after the one of iteration 0.
func (s *Setup) EvalCount() int { return s.evals.count(s.Config.Iterations, s.Config.EvalPoints) }

// count returns the number of evaluations of a run of so many iterations and eval_points after the
// one of iteration 0. With eval_epochs the one before the last may be rounded up to the end of the
// run: the two are one evaluation.
func (e evaluations) count(iterations, evalPoints int) int {
	points := min(evalPoints, iterations)
	if e.every > 0 && points > 1 && e.at(points-1) >= iterations {
		return points - 1
	}
	return points
}

// points returns eval_points of a run of so many iterations with eval_epochs.
func (e evaluations) points(iterations int) int {
	return max(1, int(math.Ceil(float64(iterations)/e.every-1e-9)))
}

// at returns the iteration of evaluation k with eval_epochs, unless it is the last one.
func (e evaluations) at(k int) int { return int(math.Round(float64(k) * e.every)) }
