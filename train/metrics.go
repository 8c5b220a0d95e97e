package train

import (
	"math"

	"fspda/train/snapshot"
)

// testExamples lists the test examples that are looked at in iteration t, spread evenly over the
// set, which may be sorted. None means all.
func testExamples(s *Setup, t int) []int32 {
	k, n := s.Config.EvalTest, s.Set.Test.Len()
	if k == 0 || k >= n || t == s.Config.Iterations {
		return nil
	}
	out := make([]int32, k)
	for i := range out {
		out[i] = int32(i * n / k)
	}
	return out
}

// batchLoss is the mean loss of the agents' own batches since the last row, weighed as in F, and
// that of the worst agent. Agents without a batch do not count; NaN where none had one.
func batchLoss(weight []float64, sn []*snapshot.Snapshot) (mean, worst Num) {
	total, worst := 0.0, Num(math.Inf(-1))
	for i, s := range sn {
		if s.Losses.Grads == 0 {
			continue
		}
		loss := s.Losses.Loss / float64(s.Losses.Grads)
		mean += Num(weight[i] * loss)
		total += weight[i]
		worst = max(worst, Num(loss))
	}
	if total == 0 {
		return Num(math.NaN()), Num(math.NaN())
	}
	return mean / Num(total), worst
}
