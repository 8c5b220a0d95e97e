package train

import (
	"context"
	"runtime"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
)

// A thousand agents on a ring, over a wide-area network, in one process: virtual time goes on, and what an agent takes does not grow with
// their number.
func TestThousandAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	set, err := data.Synthetic(data.SyntheticOptions{Train: 2000, Test: 100, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	few, some := perAgent(t, set, 250), perAgent(t, set, 1000)
	t.Logf("%.0f bytes an agent of 250, %.0f of 1000", few, some)
	if some > 1.1*few {
		t.Errorf("an agent takes %.0f bytes among 250, and %.0f among 1000", few, some)
	}
}

// perAgent is the memory of an agent in the middle of a run.
func perAgent(t *testing.T, set *data.Set, n int) float64 {
	c := small()
	c.Agents, c.Edges, c.Gamma, c.Partition, c.Batch, c.Hidden = n, "full", 0.3, "shuffled", 2, Widths{}
	c.Iterations, c.EvalPoints, c.EvalAgents, c.Eta = 30, 1, 1, AutoFloat{V: 1e-4}
	c.Links = withLinks(t, "{gradient_ms: 5, gradient_law: exp, default: {latency_ms: 50, bandwidth_mbit: 10, loss: 0.01}}")
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Activation: c.Activation, WeightDecay: c.Decay})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New()
	defer dev.Close()
	m := model.NewEngine(net, dev)
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	var there uint64
	r, err := Run(context.Background(), s, Options{Device: dev, Model: m, OnStep: func(k int) {
		if k == c.Iterations/2 {
			there = heap()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last := r.Rows[1]; last.Time < 30*0.05 || last.TimeMean > last.Time {
		t.Errorf("%d agents: virtual time %v, mean %v", n, last.Time, last.TimeMean)
	}
	return (float64(there) - float64(before)) / float64(n)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
