package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"fspda/train/setting"
)

// fullMetricsLimit bounds the cost of a row with metrics auto, in models times parameters times
// training examples. It is one or two minutes on one core, if an example uses every parameter once.
const fullMetricsLimit = 2e12

// textMetricsLimit is the limit for text, which a run reads once or twice: rows of minutes would
// take longer than the training.
const textMetricsLimit = 2e11

// With metrics auto, gradients of full metrics take at most fullMetricsShare of the work of
// training, unless all of them together are fewMetrics, in parameters times training examples: a
// second on one core. Objective and gradient are taken over a fixed sample of at least leastSample
// examples where all training data would take more.
const (
	fullMetricsShare = 0.2
	fewMetrics       = 2e10
	leastSample      = 100
)

// ChunkExamples is how many examples are evaluated at a time, and chunkFeatures the largest size of
// an example for which this holds. The last bits of the metrics depend on it.
const (
	ChunkExamples = 250
	chunkFeatures = 4096
	chunkTokens   = 1024
)

// evaluations says when a run is evaluated.
type evaluations struct {
	every float64 // iterations from one evaluation to the next; 0: as eval_points says
	off   bool    // Nothing is evaluated: it is a trial run.
}

// settleMetrics resolves metrics auto. With batch norm the objective over all data has no gradient,
// because it depends on the batches.
func (s *Setup) settleMetrics() {
	c := &s.Config
	if c.Metrics != "" {
		return
	}
	models := float64(s.EvaluatedAgents() + 1)
	each, limit := float64(s.Dim), fullMetricsLimit // uses of parameters by an example
	if s.Window > 0 {
		each, limit = each*float64(s.Window), textMetricsLimit
	}
	all := float64(s.Set.Train.Len())
	if len(s.Buffers) > 0 || models*each*all > limit {
		c.Metrics = MetricsTest
		return
	}
	rows := float64(s.EvalCount()) // At iteration 0 all models are equal, which is one.
	training := float64(c.Iterations) * float64(c.Agents) * float64(s.BatchSize()*s.GradientsPerBatch())
	share := rows * models * all / training
	c.Metrics = MetricsFull
	if c.given.wholeMetrics || share <= fullMetricsShare || rows*models*each*all <= fewMetrics {
		return
	}
	n, _ := strconv.ParseFloat(fmt.Sprintf("%.1e", 0.95*all*fullMetricsShare/share), 64) // two digits
	took := fmt.Sprintf("over a fixed sample of %.0f of the %.0f training examples", n, all)
	if c.Metrics = Chosen(fmt.Sprintf("%s(%.0f)", MetricsFull, n)); n < max(leastSample, float64(c.Agents)) {
		c.Metrics, took = MetricsTest, "left out"
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf("metrics %s: objective and gradient are %s, since all would take %.2g "+
		"times the work of training; metrics full takes all", c.Metrics, took, share))
}

// KeepWholeMetrics makes metrics auto take full metrics wherever a row alone is affordable, as
// experiments do whose plots show the objective.
func (c *Config) KeepWholeMetrics() { c.wholeMetrics = true }

// FullMetrics reports whether a row has the objective and its gradient.
func (s *Setup) FullMetrics() bool {
	return s.Config.Metrics == MetricsFull || strings.HasPrefix(string(s.Config.Metrics), MetricsFull+"(")
}

// MetricsShards returns the examples of each agent over which full metrics are taken: all, or a
// sample spread evenly over each shard, in proportion to its size.
func (s *Setup) MetricsShards() [][]int32 {
	n := metricsSample(string(s.Config.Metrics))
	if n == 0 || n >= s.Set.Train.Len() {
		return s.Shards
	}
	total := 0
	for _, shard := range s.Shards {
		total += len(shard)
	}
	shards := make([][]int32, len(s.Shards))
	for i, shard := range s.Shards {
		k := int(math.Round(float64(n) * float64(len(shard)) / float64(total)))
		k = min(max(k, 1), len(shard))
		for j := range k {
			shards[i] = append(shards[i], shard[j*len(shard)/k])
		}
	}
	return shards
}

// metricsSample returns the number n of metrics full(n), 0 for other metrics.
func metricsSample(metrics string) int {
	inner, ok := strings.CutPrefix(metrics, MetricsFull+"(")
	n, err := strconv.Atoi(strings.TrimSuffix(inner, ")"))
	if !ok || err != nil || !strings.HasSuffix(inner, ")") {
		return 0
	}
	return n
}

// checkMetrics accepts the names, and full(n) with a number of at least 1.
func checkMetrics(key string, value any) error {
	got := value.(string)
	if metricsSample(got) >= 1 {
		return nil
	}
	return setting.OneOf(auto, MetricsFull, MetricsFull+"(n)", MetricsTest)(key, got)
}

// EvaluatedAgents returns the number of agents whose own models are evaluated.
func (s *Setup) EvaluatedAgents() int {
	if k := s.Config.EvalAgents; k > 0 {
		return min(k, s.Config.Agents)
	}
	return s.Config.Agents
}

// EvalChunk returns how many examples are evaluated at a time. Of large examples it is at most a
// MicroBatch, for which there is memory, and of windows of tokens about chunkTokens tokens.
func (s *Setup) EvalChunk() int {
	if s.Window > 0 {
		return min(ChunkExamples, max(1, chunkTokens/s.Window))
	}
	if s.Set.Features() <= chunkFeatures {
		return ChunkExamples
	}
	return min(ChunkExamples, s.MicroBatch())
}

// warn warns of evaluations that take long, and of a run of one agent.
func (s *Setup) warn() {
	if s.Graph.N == 1 && !s.AllReduces() {
		s.Warnings = append(s.Warnings, "one agent: its graph has no edge, so that nothing is exchanged and "+
			"consensus is 0")
	}
	if c := s.Config; c.optimizer().UnitSteps && c.Alpha > largeUnitStep {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s moves each weight by about alpha, here %g, in an iteration, "+
			"however small its gradient: 0.0001 to 0.01 are usual", c.Optimizer, c.Alpha))
	}
	if c := s.Config; c.Agents >= manyAgents && c.EvalAgents == 0 && c.Metrics == MetricsFull {
		s.Warnings = append(s.Warnings, fmt.Sprintf("each of the %d evaluations passes all training data once for "+
			"each of %d agents: eval_agents 10 looks at ten of them", s.EvalCount()+1, c.Agents))
	}
}

// largeUnitStep is an alpha from which on optimizers with unit steps seldom learn.
const largeUnitStep = 0.05

// WithoutEvaluations returns a copy of the setup for a trial run of the given length.
func (s *Setup) WithoutEvaluations(iterations int) *Setup {
	short := *s
	short.Config.Iterations, short.evals.off = iterations, true
	return &short
}

// Trial reports whether the setup is one of WithoutEvaluations.
func (s *Setup) Trial() bool { return s.evals.off }
