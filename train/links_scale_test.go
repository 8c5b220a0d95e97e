package train

import (
	"context"
	"runtime"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
)

// A thousand agents on a ring, over a wide-area network, in one process: virtual time goes on.
func TestThousandAgents(t *testing.T) {
	s, m := ringOf(t, 1000)
	r, err := Run(context.Background(), s, Options{Device: cpuDevice, Model: m})
	if err != nil {
		t.Fatal(err)
	}
	if last := r.Rows[1]; last.Time < Num(s.Config.Iterations)*0.05 || last.TimeMean > last.Time {
		t.Errorf("virtual time %v, mean %v", last.Time, last.TimeMean)
	}
}

// What an agent takes, with its clock and its part of an iteration, does not grow with their
// number.
func TestMemoryIsLinear(t *testing.T) {
	perAgent(t, 100) // what is made once is made, and what other tests left is gone
	few, many := perAgent(t, 100), perAgent(t, 1000)
	t.Logf("%.0f bytes an agent of 100, %.0f of 1000", few, many)
	if many > 1.15*few {
		t.Errorf("an agent takes %.0f bytes among 100, and %.0f among 1000", few, many)
	}
}

// perAgent is the memory of one of n agents, in which each was at an iteration.
func perAgent(t *testing.T, n int) float64 {
	s, m := ringOf(t, n)
	dev := cpu.New() // which has nothing in reserve from before
	r := newRun(s, Options{Device: dev, Model: m})
	before := heap()
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.agents {
		defer a.gradients.loader.Close()
		a.exchange.connect(0)
		for k := range a.round.Links {
			a.clock.Post(0, a.round.Links[k].Peer, 1)
		}
		if err := a.gradients.take(); err != nil { // with one batch out the loader has made all of its batches
			t.Fatal(err)
		}
	}
	took := int64(heap()) - int64(before)
	for _, a := range r.agents {
		a.release()
	}
	runtime.KeepAlive(r)
	return float64(took) / float64(n)
}

// ringOf is a small model on n agents.
func ringOf(t *testing.T, n int) (*Setup, Model) {
	t.Helper()
	set, err := data.Synthetic(data.SyntheticOptions{Train: 2000, Test: 100, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := small()
	c.Agents, c.Edges, c.Gamma, c.Partition, c.Batch, c.Hidden = n, "full", 0.3, "shuffled", 2, Widths{}
	c.Iterations, c.EvalPoints, c.EvalAgents, c.Eta = 12, 1, 1, AutoFloat{V: 1e-4}
	c.Links = withLinks(t, "{gradient_ms: 5, gradient_law: exp, default: {latency_ms: 50, bandwidth_mbit: 10, loss: "+
		"0.01}}")
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Activation: c.Activation,
		WeightDecay: c.WeightDecay})
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewEngine(net, cpuDevice)
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func heap() uint64 {
	for range 3 { // the first passes empty the pools of what ran before
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
