package train

import (
	"math"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/evaluate"
	"fspda/train/snapshot"
)

// The metrics of a final state, against a plain program: one batch a shard, every agent's own
// share.
func TestRowAgainstPlainProgram(t *testing.T) {
	for _, objective := range []string{"agents", "samples"} {
		c := small()
		c.Partition, c.Objective, c.WeightDecay, c.Batch = "dirichlet(1)", objective, 0.01, 8
		s, m := resolve(t, c)
		r := play(t, c, Options{})
		got := r.Rows[len(r.Rows)-1]
		dev := cpu.New()
		at := func(x []float32) (f, sq float64, grad [][]float64) {
			v, g := dev.NewVector(s.Dim), dev.NewVector(s.Dim)
			dev.Write(v, x)
			full := make([]float64, s.Dim)
			for i, shard := range s.Shards {
				var b device.Batch
				s.Set.Train.Gather(&b, shard)
				loss, err := m.Grad(g, v, b)
				if err != nil {
					t.Fatal(err)
				}
				host := make([]float32, s.Dim)
				dev.Read(host, g)
				gi := make([]float64, s.Dim)
				for k, v := range host {
					gi[k] = float64(v)
					full[k] += s.Weight[i] * float64(v)
				}
				grad = append(grad, gi)
				f += s.Weight[i] * loss
			}
			for _, v := range full {
				sq += v * v
			}
			return f, sq, append(grad, full)
		}
		worstF, worstSq, consensus, largest := 0.0, 0.0, 0.0, 0.0
		mean := meanOf(r.Models)
		for _, x := range r.Models {
			f, sq, _ := at(x)
			worstF, worstSq = math.Max(worstF, f), math.Max(worstSq, sq)
			gap := 0.0
			for k := range x {
				gap += (float64(x[k]) - mean[k]) * (float64(x[k]) - mean[k])
			}
			consensus, largest = consensus+gap, math.Max(largest, gap)
		}
		f, sq, _ := at(r.Mean)
		v, entropy := dev.NewVector(s.Dim), 0.0
		dev.Write(v, r.Mean)
		for i, shard := range s.Shards {
			var b device.Batch
			s.Set.Train.Gather(&b, shard)
			loss, _, _, err := m.Score(v, b)
			if err != nil {
				t.Fatal(err)
			}
			entropy += s.Weight[i] * loss / float64(len(shard))
		}
		for _, q := range []struct {
			name      string
			got, want float64
		}{
			{"train_loss_worst", float64(got.TrainLossWorst), worstF}, {"grad_sq_worst", float64(got.GradSqWorst),
				worstSq},
			{"train_loss_avg", float64(got.TrainLossAvg), f}, {"grad_sq_avg", float64(got.GradSqAvg), sq},
			{"train_data_loss_avg", float64(got.TrainDataLoss), entropy},
			{"consensus", float64(got.Consensus), consensus}, {"consensus_max", float64(got.ConsensusMax), largest},
		} {
			// float32 gradients of chunks against one of a whole shard
			if math.Abs(q.got-q.want) > 1e-5*math.Abs(q.want) {
				t.Errorf("%s, %s: %v, want %v", objective, q.name, q.got, q.want)
			}
		}
		if got.GradsTotal != c.Agents*c.Iterations || got.Iteration != c.Iterations {
			t.Errorf("%d gradients by iteration %d", got.GradsTotal, got.Iteration)
		}
	}
}

// With exact gradients on a small smooth problem the duals find (alpha/((1-mu)·eta))·(∇F - ∇f_i):
// dual_track falls.
func TestDualsTrackGradients(t *testing.T) {
	c := small()
	c.Sampling, c.Edges, c.Density, c.Hidden, c.Iterations, c.Alpha, c.Momentum = "full", "full", 1, Widths{}, 400,
		0.02, 0.5
	c.Gamma, c.Eta = 0.3, AutoFloat{V: 0.05}
	r := play(t, c, Options{})
	first, last := r.Rows[1], r.Rows[len(r.Rows)-1]
	if !(last.DualTrack < 0.05*first.DualTrack) {
		t.Errorf("dual_track went from %v to %v", first.DualTrack, last.DualTrack)
	}
}

// With objective samples the agents' mean direction is the gradient of the objective in which
// samples weigh equally: one full-gradient step of central SGD is one step of gradient descent on
// all samples.
func TestObjectiveSamples(t *testing.T) {
	c := small()
	c.Partition, c.Objective, c.Sampling, c.Algo, c.Batch, c.Iterations, c.EvalPoints, c.WeightDecay = "dirichlet(0.5)",
		"samples", "full", "sgd", 1, 1, 1, 0.1
	s, m := resolve(t, c)
	if len(s.Shards[0]) == len(s.Shards[1]) {
		t.Fatal("the shards are of equal size: the test would prove nothing")
	}
	got := play(t, c, Options{}).Mean
	var all []int32
	for _, shard := range s.Shards {
		all = append(all, shard...)
	}
	var b device.Batch
	s.Set.Train.Gather(&b, all)
	dev := cpu.New()
	x, g := dev.NewVector(s.Dim), dev.NewVector(s.Dim)
	dev.Write(x, m.Init(c.Seed))
	if _, err := m.Grad(g, x, b); err != nil {
		t.Fatal(err)
	}
	dev.Do(device.Combine(x, device.Term{A: 1, V: x}, device.Term{A: -c.Alpha, V: g}))
	want := make([]float32, s.Dim)
	dev.Read(want, x)
	for k := range want {
		if math.Abs(float64(got[k]-want[k])) > 2e-6 {
			t.Fatalf("coordinate %d: %v, want %v", k, got[k], want[k])
		}
	}
}

// Algorithms without duals have no dual metrics.
func TestNoDuals(t *testing.T) {
	c := small()
	c.Algo = "dsgd"
	last := play(t, c, Options{}).Rows[c.EvalPoints]
	if !math.IsNaN(float64(last.DualSum)) || !math.IsNaN(float64(last.DualTrack)) {
		t.Errorf("dual_sum %v, dual_track %v", last.DualSum, last.DualTrack)
	}
	line, err := last.DualSum.MarshalJSON()
	if err != nil || string(line) != "null" {
		t.Errorf("%s, %v", line, err)
	}
}

func TestRingShare(t *testing.T) {
	for _, c := range [][2]int{{2, 10}, {3, 10}, {10, 79510}, {7, 3}} {
		sum := 0
		for i := range c[0] {
			sum += config.RingShare(i, c[0], c[1])
		}
		if want := 2 * (c[0] - 1) * c[1]; sum != want {
			t.Errorf("n %d, d %d: %d values, want %d", c[0], c[1], sum, want)
		}
	}
}

// meanOf returns the mean of models.
func meanOf(models [][]float32) []float64 {
	mean := make([]float64, len(models[0]))
	for k := range mean {
		for _, m := range models {
			mean[k] += float64(m[k]) / float64(len(models))
		}
	}
	return mean
}

// An agent that is absent is left out of all means, least and largest values.
func TestAbsentAgentIsLeftOut(t *testing.T) {
	c := small()
	s, m := resolve(t, c)
	dev := cpu.New()
	var set []*snapshot.Snapshot
	for i := range c.Agents {
		sn := snapshot.New(dev, &algo.State{X: dev.NewVector(s.Dim), Aux: make([]device.Vector, len(s.Traits.Aux))}, 0,
			nil)
		dev.Write(sn.X, m.Init(uint64(i)))
		sn.Agent, sn.Eval = i, true
		set = append(set, sn)
	}
	e := evaluate.New(s, []evaluate.Worker{{Device: dev, Model: m}})
	whole, err := e.Evaluate(set)
	if err != nil {
		t.Fatal(err)
	}
	set[2].ReplaceAbsent(2, 0, snapshot.Counters{Grads: 7})
	snapshot.FillMissing(set)
	got, err := e.Evaluate(set)
	if err != nil {
		t.Fatal(err)
	}
	least, sum, most := math.Inf(1), 0.0, 0.0
	for i, a := range got.Agents {
		if (a.Accuracy != a.Accuracy || a.Distance != a.Distance) != (i == 2) {
			t.Errorf("agent %d has %+v", i, a)
		}
		if i != 2 {
			least, most, sum = math.Min(least, a.Accuracy), math.Max(most, a.Accuracy), sum+a.Accuracy
		}
	}
	if r := got.Row; float64(r.TestAccMin) != least || float64(r.TestAccMax) != most ||
		math.Abs(float64(r.TestAccMean)-sum/4) > 1e-12 || r.AgentsPresent != 4 || r.GradsTotal != 7 {
		t.Errorf("%+v; the others have %g to %g", r, least, most)
	}
	if whole.AgentsPresent != 5 || whole.TestAccMean == got.TestAccMean || whole.Consensus == got.Consensus {
		t.Errorf("with all agents: %+v", whole.Row)
	}
}
