package config

import "fmt"

// fullMetricsLimit bounds the cost of a row with metrics auto, in models times parameters times
// training examples. It is one or two minutes on one core, if an example uses every parameter once.
const fullMetricsLimit = 2e12

// textMetricsLimit is the limit for text, which a run reads once or twice: rows of minutes would
// take longer than the training.
const textMetricsLimit = 2e11

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
	models := s.EvaluatedAgents() + 1
	c.Metrics = MetricsFull
	uses, limit := float64(s.Set.Train.Len()), fullMetricsLimit // uses of each parameter
	if s.Window > 0 {
		uses, limit = uses*float64(s.Window), textMetricsLimit
	}
	if len(s.Buffers) > 0 || float64(models)*float64(s.Dim)*uses > limit {
		c.Metrics = MetricsTest
	}
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
