package config

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/internal/rng"
	"fspda/model"
)

// 400 examples over 5 agents in batches of 16 are 5 iterations an epoch.
func TestEpochs(t *testing.T) {
	c := small()
	c.Iterations, c.EvalPoints = Default().Iterations, Default().EvalPoints
	c.Epochs, c.EvalEpochs, c.Schedule, c.Warmup = 10, 3, "cosine", 2
	s, _ := resolve(t, c)
	if s.Config.Iterations != 50 || s.Config.EvalPoints != 4 {
		t.Errorf("%d iterations and %d evaluations", s.Config.Iterations, s.Config.EvalPoints)
	}
	var at []int
	for it := range 60 {
		if k := s.EvalsBefore(it); k != len(at) {
			t.Errorf("%d evaluations before %d, want %d", k, it, len(at))
		}
		if s.EvalAt(it) {
			at = append(at, it)
		}
	}
	if want := []int{0, 15, 30, 45, 50}; len(at) != len(want) || at[1] != 15 || at[3] != 45 || at[4] != 50 {
		t.Errorf("evaluated at %v, want %v", at, want)
	}
	for _, q := range []struct{ epoch, want float64 }{{1, 0.5}, {2, 1}, {6, 0.5}, {10, 0}} {
		if alpha, _ := s.Schedule.At(int(q.epoch*5) - 1); math.Abs(alpha-q.want*c.Alpha) > 1e-15 {
			t.Errorf("epoch %v: alpha %v, want %v", q.epoch, alpha, q.want*c.Alpha)
		}
	}
	again, _ := resolve(t, s.Config.Stored())
	if d := again.Config.Stored().Differences(s.Config.Stored()); len(d) > 0 {
		t.Errorf("resolved again it differs: %v", d)
	}
}

// With eval_epochs no two evaluations are at one iteration. 400 examples over 5 agents in batches
// of 32 are 3 iterations an epoch: at a distance of 7.5 the evaluation at 22.5 is rounded to 23.
func TestEvalEpochsAreDistinct(t *testing.T) {
	for iterations := 1; iterations < 50; iterations++ {
		c := small()
		c.Batch, c.Iterations, c.EvalPoints, c.EvalEpochs = 32, iterations, Default().EvalPoints, 2.5
		s, _ := resolve(t, c)
		if s.PerEpoch() != 3 {
			t.Fatalf("%v iterations an epoch", s.PerEpoch())
		}
		for k := range s.EvalCount() {
			if s.EvalPoint(k) >= s.EvalPoint(k+1) {
				t.Errorf("%d iterations: evaluations %d and %d are at %d and %d", iterations, k, k+1, s.EvalPoint(k),
					s.EvalPoint(k+1))
			}
		}
		if s.EvalPoint(s.EvalCount()) != iterations || s.EvalsBefore(iterations) != s.EvalCount() {
			t.Errorf("%d iterations: %d evaluations before the end, of %d", iterations, s.EvalsBefore(iterations),
				s.EvalCount())
		}
	}
}

// A run of less than eval_epochs is evaluated at iteration 0 and at its end, as with eval_points 1.
func TestEvalEpochsBeyondTheEnd(t *testing.T) {
	c := small()
	c.EvalPoints, c.EvalEpochs = Default().EvalPoints, 1e308
	s, _ := resolve(t, c)
	if s.Config.EvalPoints != 1 || !s.EvalAt(0) || !s.EvalAt(c.Iterations) {
		t.Errorf("eval_points %d, evaluated at 0: %v, at the end: %v", s.Config.EvalPoints, s.EvalAt(0),
			s.EvalAt(c.Iterations))
	}
}

func TestEpochsRefused(t *testing.T) {
	refuses(t, map[string]refusal{
		"both": {func(c *Config) { c.Epochs = 10 }, []string{"iterations 60", "epochs 10", "50",
			"leave one of the two out"}},
		"both points": {func(c *Config) { c.EvalPoints, c.EvalEpochs = 7, 1 },
			[]string{"eval_points 7", "eval_epochs 1", "12"}},
		"none": {func(c *Config) { c.Iterations, c.Epochs = 3000, 0.01 },
			[]string{"epochs 0.01", "5 iterations"}},
		"too often":  {func(c *Config) { c.EvalEpochs = 0.1 }, []string{"eval_epochs 0.1", "at least 0.2"}},
		"below zero": {func(c *Config) { c.Epochs = -1 }, []string{"epochs -1"}},
		"inside a round": {func(c *Config) { c.Algo, c.LocalSteps, c.EvalPoints, c.EvalEpochs = "led", 3, 20, 1 },
			[]string{"eval_epochs 1", "rounds of 3", "iteration 5"}},
	})
}

// There may be more evaluations than would fit into memory.
func TestEvalPointsOfAHugeRun(t *testing.T) {
	s := &Setup{Config: resolving(runOf(1e18, 1e17))}
	if !s.EvalAt(0) || !s.EvalAt(1e18) || !s.EvalAt(20) || s.EvalAt(21) {
		t.Error("evaluated elsewhere than at each tenth iteration")
	}
}

func TestEvalPoints(t *testing.T) {
	for _, c := range []struct{ T, P, n int }{{1000, 20, 21}, {7, 3, 4}, {3, 10, 4}, {1, 1, 2}} {
		var at []int
		s := &Setup{Config: resolving(runOf(c.T, c.P))}
		for it := range c.T + 5 {
			if k := s.EvalsBefore(it); k != len(at) {
				t.Errorf("T %d, P %d: %d evaluations before %d, want %d", c.T, c.P, k, it, len(at))
			}
			if s.EvalAt(it) {
				at = append(at, it)
			}
		}
		if len(at) != c.n || at[0] != 0 || at[len(at)-1] != c.T {
			t.Errorf("T %d, P %d: %v", c.T, c.P, at)
		}
		for k, it := range at { // spread evenly, to the nearest iteration
			if gap := math.Abs(float64(it) - float64(k*c.T)/float64(c.n-1)); gap > 0.5 {
				t.Errorf("T %d, P %d: evaluation %d at iteration %d", c.T, c.P, k, it)
			}
		}
	}
}

func TestAutoMetrics(t *testing.T) {
	c := small()
	if s, _ := resolve(t, c); s.Config.Metrics != "full" {
		t.Errorf("a small network has metrics %s", s.Config.Metrics)
	}
	s, err := c.Resolve(labSet, withBatchNorm{labModel(t, c)})
	if err != nil || s.Config.Metrics != "test" {
		t.Errorf("with batch norm metrics are %s, %v", s.Config.Metrics, err)
	}
	s.Config.Metrics, s.Buffers, s.Dim = "", nil, 1<<31
	if s.settleMetrics(); s.Config.Metrics != "test" {
		t.Errorf("a large network has metrics %s", s.Config.Metrics)
	}
	c.Metrics = "fast"
	if _, err := c.Resolve(labSet, withBatchNorm{labModel(t, c)}); err == nil || !strings.Contains(err.Error(),
		"metrics") || !strings.Contains(err.Error(), "auto, full, full(n), test") {
		t.Errorf("error %v", err)
	}
}

// Of any run, metrics auto take full metrics where they are a fifth of the work of training at most,
// or about a second of it, and a sample within a fifth otherwise, which it says. Experiments take
// them wherever a row alone is affordable.
func TestAutoMetricsShare(t *testing.T) {
	r := rng.New(3, "metrics")
	seen := map[bool]int{}
	for range 300 {
		c := small()
		c.Iterations, c.EvalPoints, c.Batch = 1+r.IntN(3000), 1+r.IntN(40), 1+r.IntN(60)
		c.Agents, c.EvalAgents = 1+r.IntN(6), r.IntN(3)
		c.EvalAgents = min(c.EvalAgents, c.Agents)
		c.Graph, c.Partition = "complete", "shuffled"
		if c.Agents == 1 {
			c.Graph = "path"
		}
		s, _ := resolve(t, c)
		s.Dim = 1 << r.IntN(26) // as if the network were of this size
		s.Config.Metrics, s.Warnings = "", nil
		s.settleMetrics()
		all, models := float64(s.Set.Train.Len()), float64(s.EvaluatedAgents()+1)
		rows := float64(s.EvalCount())
		training := float64(c.Iterations*c.Agents) * float64(s.BatchSize()*s.GradientsPerBatch())
		taken := all
		if n := metricsSample(string(s.Config.Metrics)); n > 0 {
			taken = float64(n)
		}
		small := rows*models*all*float64(s.Dim) <= fewMetrics
		switch whole := s.Config.Metrics == MetricsFull; {
		case models*float64(s.Dim)*all > fullMetricsLimit:
			if s.Config.Metrics != MetricsTest || len(s.Warnings) > 0 {
				t.Errorf("%d iterations: metrics %s of a large network, %q", c.Iterations, s.Config.Metrics, s.Warnings)
			}
			continue
		case whole != (small || rows*models*all <= fullMetricsShare*training):
			t.Errorf("%d iterations, d %d: metrics %s", c.Iterations, s.Dim, s.Config.Metrics)
		case whole != (len(s.Warnings) == 0):
			t.Errorf("metrics %s says %q", s.Config.Metrics, s.Warnings)
		case s.FullMetrics() && !small && rows*models*taken > 1.001*fullMetricsShare*training:
			t.Errorf("%d iterations: metrics %s take %.2f of the training", c.Iterations, s.Config.Metrics,
				rows*models*taken/training)
		}
		seen[s.Config.Metrics == MetricsFull]++
		total := 0
		for i, shard := range s.MetricsShards() {
			total += len(shard)
			for j, k := range shard {
				if !slices.Contains(s.Shards[i], k) || slices.Contains(shard[:j], k) {
					t.Fatalf("example %d of agent %d", k, i)
				}
			}
		}
		if math.Abs(float64(total)-taken) > float64(c.Agents) {
			t.Errorf("metrics %s take %d examples", s.Config.Metrics, total)
		}
		s.Config.given.KeepWholeMetrics()
		s.Config.Metrics = ""
		if s.settleMetrics(); s.Config.Metrics != MetricsFull {
			t.Errorf("an experiment has metrics %s", s.Config.Metrics)
		}
	}
	if seen[true] < 20 || seen[false] < 20 {
		t.Errorf("full and others: %v", seen)
	}
}

func TestWireRefused(t *testing.T) {
	for _, name := range []string{"choco", "swarm", "beer", "demo", "fspda-async"} {
		c := small()
		c.Algo, c.Wire = name, "fp16"
		if _, err := c.Resolve(labSet, labModel(t, c)); err == nil || !strings.Contains(err.Error(), "wire") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := small()
	c.Wire = "fp8"
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "wire") {
		t.Errorf("fp8: %v", err)
	}
}

// Links that contradict other keys of the configuration are refused.
func TestLinksAgainstConfig(t *testing.T) {
	async := func(c *Config) { c.Algo = "fspda-async" }
	for text, edit := range map[string]func(c *Config){
		"gradient_ms: 0": async,
		"gradient_ms: 1": func(c *Config) { async(c); c.ComputeTime = "constant" },
		"gradient_ms: 2": func(c *Config) { async(c); c.Slowness = "linear(2)" },
	} {
		c := small()
		edit(&c)
		c.Links = withLinks(t, text)
		if _, err := c.Resolve(labSet, labModel(t, c)); err == nil {
			t.Errorf("%s was accepted with %s, %s", text, c.ComputeTime, c.Slowness)
		}
	}
	c := small()
	c.Links = "/no/such/wan.yaml"
	if _, err := c.Resolve(labSet, labModel(t, c)); err == nil || !strings.Contains(err.Error(),
		"links /no/such/wan.yaml") {
		t.Errorf("error %v", err)
	}
}

// Links change the fingerprint of an asynchronous run and of no other.
func TestLinksFingerprint(t *testing.T) {
	for _, name := range Algorithms() {
		a := small()
		a.Algo = name
		b := a
		b.Links = "wan.yaml"
		if same := a.Fingerprint() == b.Fingerprint(); same == strings.HasPrefix(name, "fspda-async") ||
			same != (len(a.Differences(b)) == 0) {
			t.Errorf("%s: links leave the fingerprint alone: %v", name, same)
		}
	}
}

// runOf is a configuration of so many iterations and evaluations.
func runOf(iterations, points int) Config {
	c := Default()
	c.Iterations, c.EvalPoints = iterations, points
	return c
}

// withBatchNorm is a model with buffers.
type withBatchNorm struct{ Model }

func (m withBatchNorm) Describe() model.Description {
	d := m.Model.Describe()
	d.Buffers = []int{4, 4}
	return d
}

// A gradient is computed over at most a batch, or the largest shard, also where the mean batch is
// smaller: 400 examples over 5 agents in batches of 48 are 48 and 32 examples.
func TestMicroBatch(t *testing.T) {
	for _, test := range []struct {
		sampling     string
		batch, parts int
		want         int
	}{{"epochs", 48, 1, 48}, {"epochs", 48, 5, 10}, {"iid", 300, 1, 300}, {"full", 256, 1, 90}, {"full", 256, 4, 23}} {
		c := small()
		c.Sampling, c.Accum, c.Batch = test.sampling, test.parts, test.batch
		s, _ := resolve(t, c)
		if test.sampling == "full" {
			s.Shards[1] = make([]int32, 90)
		}
		if got := s.MicroBatch(); got != test.want {
			t.Errorf("%+v: %d examples", test, got)
		}
	}
}
