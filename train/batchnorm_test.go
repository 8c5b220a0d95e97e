package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
	"fspda/train/config"
	"fspda/train/evaluate"
)

// withNorm is a configuration for [normed].
func withNorm() Config {
	c := small()
	c.Hidden, c.Alpha, c.Iterations, c.EvalPoints, c.BNBatches = Widths{}, 0.002, 24, 3, 5
	return c
}

func playNormed(t *testing.T, c Config, m normed, opt Options) (*Setup, *Result) {
	t.Helper()
	s, err := c.Resolve(labSet, m)
	if err != nil {
		t.Fatal(err)
	}
	opt.Device, opt.Model = cpuDevice, m
	r, err := Run(context.Background(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != Finished {
		t.Fatalf("%s: status %s: %v", c.Algo, r.Status, r.Diverged)
	}
	return s, r
}

// Every agent's buffers are those of a walk along its own batches alone: neither messages nor
// evaluations nor STORM's second gradient move them.
func TestBuffersAreLocal(t *testing.T) {
	for _, edit := range []func(*Config){
		func(c *Config) {},
		func(c *Config) { c.Algo = "fspda-storm" },
		func(c *Config) { c.Algo, c.Compress = "choco", "qsgd(255)" },
		func(c *Config) { c.Algo = "swarm" },
		func(c *Config) { c.Algo = "kgt"; c.LocalSteps = 4 },
		func(c *Config) { c.Metrics = "full" },
		func(c *Config) { c.BN = "recalibrate" },
	} {
		c := withNorm()
		edit(&c)
		m := newNormed(c.WeightDecay)
		s, r := playNormed(t, c, m, Options{})
		for i, got := range r.Buffers {
			want := walkBuffers(t, s, m, i, c.Iterations)
			if !slices.Equal(got, want) {
				t.Errorf("%s, agent %d: its buffers are not those of its batches", c.Algo, i)
			}
		}
		if slices.Equal(r.Buffers[0], r.Buffers[1]) {
			t.Errorf("%s: two agents with different data have the same buffers", c.Algo)
		}
	}
}

// walkBuffers moves fresh buffers by an agent's first batches.
func walkBuffers(t *testing.T, s *Setup, m normed, agent, steps int) []float32 {
	t.Helper()
	l, err := s.Loader(agent, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v := cpuDevice.NewVector(s.BufferLen())
	cpuDevice.Write(v, m.InitBuffers())
	for range steps {
		b, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.observe(v, b, 0.1); err != nil {
			t.Fatal(err)
		}
		l.Release(b)
	}
	return onHost(v)
}

// STORM takes two gradients an iteration; one of them is the step.
func TestStormStepsOnce(t *testing.T) {
	c := withNorm()
	c.Algo = "fspda-storm"
	m := newNormed(c.WeightDecay)
	playNormed(t, c, m, Options{})
	if steps, other := m.steps.Load(), m.grads.Load(); steps != int64(c.Agents*c.Iterations) ||
		other != int64(c.Agents*(c.Iterations-1)) {
		t.Errorf("%d training steps and %d other gradients, want %d and %d", steps, other, c.Agents*c.Iterations,
			c.Agents*(c.Iterations-1))
	}
}

// The three modes, each against a plain program on the final state. The last row is recalibrated
// unless local was asked for.
func TestBatchNormModes(t *testing.T) {
	rows := map[string][]Row{}
	for _, mode := range []string{config.BNPooled, config.BNRecalibrate, config.BNLocal} {
		c := withNorm()
		c.BN = mode
		m := newNormed(c.WeightDecay)
		s, r := playNormed(t, c, m, Options{})
		rows[mode] = r.Rows
		last := r.Rows[len(r.Rows)-1]
		final := config.BNRecalibrate
		if mode == config.BNLocal {
			final = config.BNLocal
		}
		if got := Summarize(s, r, "cpu", "").BN; got != final {
			t.Errorf("bn %s: the summary says %q", mode, got)
		}
		acc, loss := 0.0, 0.0
		switch final {
		case config.BNRecalibrate:
			acc, loss = scoreWith(t, m, r.Mean, measured(t, s, m))
		case config.BNLocal:
			for _, b := range r.Buffers {
				a, l := scoreWith(t, m, r.Mean, b)
				acc, loss = acc+a/float64(c.Agents), loss+l/float64(c.Agents)
			}
		}
		if math.Abs(float64(last.TestAccAvg)-acc) > 1e-12 || math.Abs(float64(last.TestLossAvg)-loss) > 1e-6*loss {
			t.Errorf("bn %s: accuracy %v and loss %v of the mean model, want %v and %v", mode, last.TestAccAvg,
				last.TestLossAvg, acc, loss)
		}
		least := math.Inf(1)
		for i, x := range r.Models {
			a, _ := scoreWith(t, m, x, r.Buffers[i])
			least = math.Min(least, a)
		}
		if math.Abs(float64(last.TestAccMin)-least) > 1e-12 {
			t.Errorf("bn %s: the worst agent has accuracy %v with its own buffers, want %v", mode, last.TestAccMin,
				least)
		}
	}
	for _, other := range []string{config.BNRecalibrate, config.BNLocal} {
		if rows[config.BNPooled][2].TestLossAvg == rows[other][2].TestLossAvg {
			t.Errorf("pooled and %s gave the same loss %v", other, rows[other][2].TestLossAvg)
		}
		if rows[config.BNPooled][2].Consensus != rows[other][2].Consensus {
			t.Errorf("bn %s changed the trajectory", other)
		}
	}
}

func TestRecalibrations(t *testing.T) {
	c := withNorm()
	c.BNBatches = 5
	s, _ := playNormed(t, c, newNormed(c.WeightDecay), Options{})
	if got := evaluate.Recalibrations(s); got != 5 {
		t.Errorf("%d batches of %d examples, want the 5 asked for", got, s.Set.Train.Len())
	}
	s.Config.BNBatches = 1 << 20
	if got, n := evaluate.Recalibrations(s)*s.MicroBatch(), s.Set.Train.Len(); got < 2*n ||
		got >= 2*(n+s.MicroBatch()) {
		t.Errorf("%d examples of %d, want two passes", got, n)
	}
	s.Config.Iterations = 3
	if got := evaluate.Recalibrations(s); got != 3*s.Config.Agents {
		t.Errorf("%d batches, want one for each of %d gradients", got, 3*s.Config.Agents)
	}
}

// measured averages moments over the recalibration batches.
func measured(t *testing.T, s *Setup, m normed) []float32 {
	t.Helper()
	sum := make([]float64, 2*m.features)
	for k := range evaluate.Recalibrations(s) {
		var b device.Batch
		s.Set.Train.GatherAugmented(&b, evaluate.RecalibrationBatch(s, nil, k), s.Config.Seed, -1, k)
		mean, variance := m.moments(b)
		n := float64(b.N())
		for j := range mean {
			sum[j] += mean[j] / float64(evaluate.Recalibrations(s))
			sum[m.features+j] += variance[j] * n / (n - 1) / float64(evaluate.Recalibrations(s))
		}
	}
	out := make([]float32, len(sum))
	for j, v := range sum {
		out[j] = float32(v)
	}
	return out
}

func scoreWith(t *testing.T, m normed, x, buffers []float32) (acc, loss float64) {
	t.Helper()
	v, w := cpuDevice.NewVector(len(x)), cpuDevice.NewVector(len(buffers))
	cpuDevice.Write(v, x)
	cpuDevice.Write(w, buffers)
	var b device.Batch
	labSet.Test.Batch(&b, 0, labSet.Test.Len())
	loss, hits, _, err := m.ScoreWith(v, w, b)
	if err != nil {
		t.Fatal(err)
	}
	return hits / float64(b.N()), loss / float64(b.N())
}

// Pooled moments are those of all values together, where each agent's are of equally many.
func TestPool(t *testing.T) {
	s := rng.New(1, "pool")
	const agents, values = 4, 50
	var all [2][]float64 // two layers of one channel
	var buffers [][]float32
	for i := range agents {
		b := make([]float32, 4)
		for l := range all {
			var own []float64
			for range values {
				own = append(own, float64(i)*float64(l+1)+s.Norm())
			}
			mean, variance := moments(own)
			b[2*l], b[2*l+1] = float32(mean), float32(variance)
			all[l] = append(all[l], own...)
		}
		buffers = append(buffers, b)
	}
	got := evaluate.PoolBuffers([]int{1, 1, 1, 1}, buffers)
	for l := range all {
		mean, variance := moments(all[l])
		if math.Abs(float64(got[2*l])-mean) > 1e-5 || math.Abs(float64(got[2*l+1])-variance) > 1e-5*variance {
			t.Errorf("layer %d: mean %v and variance %v, want %v and %v", l, got[2*l], got[2*l+1], mean, variance)
		}
	}
	wide := evaluate.PoolBuffers([]int{2, 2}, [][]float32{{1, 2, 3, 4}, {3, 2, 5, 4}})
	if want := []float32{2, 2, 5, 4}; !slices.Equal(wide, want) {
		t.Errorf("%v, want %v", wide, want)
	}
}

func moments(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, variance
}

// Recalibration sees the agents as F weighs them, and its batches are a function of seed and
// number.
func TestRecalibrationBatches(t *testing.T) {
	for _, objective := range []string{"agents", "samples"} {
		c := withNorm()
		c.Partition, c.Objective, c.Batch = "dirichlet(0.5)", objective, 8
		s, err := c.Resolve(labSet, newNormed(0))
		if err != nil {
			t.Fatal(err)
		}
		owner := map[int32]int{}
		for i, shard := range s.Shards {
			for _, e := range shard {
				owner[e] = i
			}
		}
		seen := make([]float64, c.Agents)
		const batches = 1000
		for k := range batches {
			got := evaluate.RecalibrationBatch(s, nil, k)
			if len(got) != c.Batch || !slices.Equal(got, evaluate.RecalibrationBatch(s, nil, k)) {
				t.Fatalf("batch %d: %v", k, got)
			}
			for _, e := range got {
				seen[owner[e]] += 1 / float64(batches*c.Batch)
			}
		}
		for i, share := range seen {
			if math.Abs(share-s.Weight[i]) > 0.025 {
				t.Errorf("%s: agent %d has %.3f of the examples, its weight is %.3f", objective, i, share, s.Weight[i])
			}
		}
	}
}

// Stopped and resumed, or with other threads, a run with batch norm gives the same bits, buffers
// and rows included.
func TestResumeWithBuffers(t *testing.T) {
	c := withNorm()
	c.Iterations, c.EvalPoints, c.EvalTest = 120, 7, 40
	m := newNormed(c.WeightDecay)
	_, want := playNormed(t, c, m, Options{})
	dir := runFolder(t)
	var got *Result
	for _, at := range []int{5, 41, 90, -1} {
		s, err := c.Resolve(labSet, m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ReadConfig(dir)
		f, err := OpenFolder(dir, s, err == nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		opt := stopping(at, stop)
		opt.Device, opt.Model, opt.Folder, opt.NoReport = cpuDevice, m, f, true
		got, err = Run(ctx, s, opt)
		stop()
		if err != nil {
			t.Fatal(err)
		}
	}
	if got.Status != Finished || got.First == 0 {
		t.Fatalf("status %s from iteration %d", got.Status, got.First)
	}
	if trace(t, got) != trace(t, want) || !slices.EqualFunc(got.Buffers, want.Buffers, slices.Equal) ||
		!slices.Equal(got.MeanBuffers, want.MeanBuffers) {
		t.Error("the resumed run differs")
	}
}
