package train

import (
	"math"

	"fspda/train/snapshot"
)

// What an evaluation looks at.
const (
	// objective and gradient over all training data, at every agent and at their mean; and the test
	// set
	metricsFull = "full"
	metricsTest = "test" // the test set; the training loss is that of the agents' own batches since the row before
)

// fullMetricsLimit is the largest number of models times parameters times training examples whose
// gradients a row may cost where metrics is auto: a minute or two on one core, if every parameter
// is used once an example.
const fullMetricsLimit = 2e12

// settleMetrics makes metrics full or test. With batch norm the objective has no gradient of its
// own: it depends on how examples are put into batches.
func (s *Setup) settleMetrics() {
	c := &s.Config
	if c.Metrics != "auto" {
		return
	}
	models := s.EvaluatedAgents() + 1
	c.Metrics = metricsFull
	if len(s.Buffers) > 0 || float64(models)*float64(s.Dim)*float64(s.Set.Train.Len()) > fullMetricsLimit {
		c.Metrics = metricsTest
	}
}

// EvaluatedAgents is the number of agents whose models are evaluated one by one.
func (s *Setup) EvaluatedAgents() int {
	if k := s.Config.EvalAgents; k > 0 {
		return min(k, s.Config.Agents)
	}
	return s.Config.Agents
}

// chunkExamples is how many examples are evaluated at a time, and chunkFeatures the largest example
// of which there may be as many. It is part of the definition of the metrics' last bits.
const (
	chunkExamples = 250
	chunkFeatures = 4096
)

// EvalChunk is how many examples are evaluated at a time. Of large ones there are no more than a
// gradient takes, for which there is memory.
func (s *Setup) EvalChunk() int {
	if s.Set.Features() <= chunkFeatures {
		return chunkExamples
	}
	return min(chunkExamples, s.MicroBatch())
}

// testExamples lists the test examples that are looked at in iteration t, spread evenly over the
// set, which may be sorted. None means all.
func (s *Setup) testExamples(t int) []int32 {
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
