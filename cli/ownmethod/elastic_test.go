package ownmethod

import (
	"fspda/device"
	"fspda/train/algo"
	"fspda/train/setting"
)

// elastic is DSGD whose agents are pulled to a slow copy z of their model. With gradient g, step
// alpha, the Metropolis weights w of the active graph and D = own - other of x - alpha·g,
//
//	x ← x - alpha·g - Pull·(x - z) - Σ w·D        z ← (1 - Fade)·(z + Pull·(x - z))
//
// with x and z of the start of the iteration on the right. With Fade 0 the mean of x + z moves by
// -alpha·mean(g).
// z starts at x, or Zero makes it start at zero.
type elastic struct {
	Pull, Fade float64
	Zero       bool
}

var method = algo.Method{
	Name: "elastic",
	Keys: []setting.Key{{Name: "fade", Topic: "method", Range: "[0, 1)", Since: "0.3.0",
		Help: "elastic: share of the slow copy that is forgotten in an iteration"}},
	Params: []setting.Key{
		{Name: "pull", Default: 0.1, Range: "[0, 1]", Help: "share of the way between model and slow copy"},
		{Name: "start", Choices: []string{"model", "zero"}, Help: "where the slow copy starts"}},
	New: func(s algo.Settings) algo.Algorithm {
		return elastic{Pull: s.Param("pull"), Fade: s.Param("fade"), Zero: s.Choice("start") == "zero"}
	},
	Check: func(r algo.Run) (warnings []string, err error) {
		if r.Settings().Param("pull") == 0 {
			warnings = append(warnings, "pull is 0: the slow copy does nothing")
		}
		return warnings, nil
	},
}

func (elastic) Name() string { return "elastic" }

func (elastic) Traits() algo.Traits {
	return algo.Traits{
		Memory:   algo.Memory{Aux: []string{"slow"}},
		Exchange: algo.Exchange{Edges: algo.AnyEdges},
		About: algo.About{Travels: "the model", Bits: "2·v·d·|E_t|", Keeps: "1", Skew: "bias, proportional to alpha",
			Graphs: "any graph and process", Source: "a test of one file"},
	}
}

func (a elastic) Local(s *algo.State, r *algo.Round) error {
	slow, g := s.Aux[0], s.Gradient()
	if r.T == 0 && !a.Zero {
		s.Dev.Do(device.Combine(slow, device.Term{A: 1, V: s.X}))
	}
	if err := r.Grad(g, s.X); err != nil {
		return err
	}
	step := device.Term{A: -r.Alpha, V: g}
	sent := r.Acquire(s.X.Len())
	s.Dev.Do(device.Combine(sent, device.Term{A: 1, V: s.X}, step))
	for i := range r.Links {
		r.Post(i, sent)
	}
	moved := r.Acquire(s.X.Len())
	s.Dev.Do(device.Combine(moved, device.Term{A: 1 - a.Pull, V: slow}, device.Term{A: a.Pull, V: s.X}))
	s.Dev.Do(device.Combine(s.X, device.Term{A: 1 - a.Pull, V: s.X}, device.Term{A: a.Pull, V: slow}, step))
	s.Dev.Do(device.Combine(slow, device.Term{A: 1 - a.Fade, V: moved}))
	return nil
}

func (elastic) Mix(s *algo.State, r *algo.Round) error {
	s.AddDifferences(r, 0, algo.ActiveWeight, device.Term{A: -1, V: s.X})
	return nil
}
