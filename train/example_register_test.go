package train_test

import (
	"context"
	"fmt"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/model"
	"fspda/train"
	"fspda/train/algo"
)

// ExactDiffusion is an algorithm of a program's own: D² (Tang, Lian, Yan, Zhang and Liu 2018),
// which this module has as d2, in its two-step form, on a static graph with a mixing matrix W whose
// eigenvalues are above -1/3:
//
//	x^1     = W (x^0 - alpha·g^0)
//	x^{t+1} = W (2x^t - x^{t-1} - alpha·(g^t - g^{t-1}))
//
// It remembers step = x^{t-1} - alpha·g^{t-1}.
type ExactDiffusion struct{}

func (ExactDiffusion) Name() string { return "two-step-d2" }

// Traits are what an agent keeps and with whom it averages.
func (ExactDiffusion) Traits() algo.Traits {
	return algo.Traits{
		Memory:   algo.Memory{Aux: []string{"step"}},
		Exchange: algo.Exchange{Edges: algo.WholeGraph, Mixing: true},
		Needs:    algo.Needs{Exact: true},
	}
}

// Local takes the gradient, moves, and sends where it has come to.
func (ExactDiffusion) Local(s *algo.State, r *algo.Round) error {
	step, next := s.Aux[0], s.Gradient()
	if err := r.Grad(next, s.X); err != nil {
		return err
	}
	s.Dev.Do(device.Combine(next, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: next}))
	if r.T == 0 {
		s.Dev.Do(device.Combine(s.X, device.Term{A: 1, V: next}))
	} else {
		s.Dev.Do(device.Combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: 1, V: next},
			device.Term{A: -1, V: step}))
	}
	s.Dev.Do(device.Combine(step, device.Term{A: 1, V: next}))
	s.Send(r, s.X)
	return nil
}

// Mix is x ← W x, by the differences to those that were heard.
func (ExactDiffusion) Mix(s *algo.State, r *algo.Round) error {
	for _, l := range r.Links {
		if l.Received != nil {
			s.Dev.Do(device.AddDiff(l.Sent[0], l.Received[0], l.Mask, device.Term{A: -l.FixedWeight, V: s.X}))
		}
	}
	return nil
}

func init() {
	train.Register(train.Method{
		Name: "two-step-d2",
		New:  func(algo.Settings) algo.Algorithm { return ExactDiffusion{} },
	})
}

// A program outside this module adds an algorithm of its own and trains with it. Agents that hold
// different digits agree on one model, which plain DSGD with the same step does not.
func ExampleRegister() {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes})
	if err != nil {
		fmt.Println(err)
		return
	}
	dev := cpu.New()
	engine := model.NewEngine(net, dev)
	for _, name := range []string{"two-step-d2", "dsgd"} {
		c := train.Default()
		c.Algo, c.Edges, c.Mask, c.Mixing, c.Theta = name, "full", "all", "lazy-metropolis", train.AutoFloat{V: 1.0 / 6}
		c.Agents, c.Graph, c.Partition, c.Sampling, c.Iterations, c.EvalPoints, c.Alpha = 4, "ring", "sorted", "full",
			150, 3, 0.1
		setup, err := c.Resolve(set, engine)
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := train.Run(context.Background(), setup, train.Options{Device: dev, Model: engine})
		if err != nil {
			fmt.Println(err)
			return
		}
		last := result.Rows[len(result.Rows)-1]
		fmt.Printf("%s: accuracy above 0.6 %v, of one mind %v\n", name, last.TestAccAvg > 0.6, last.Consensus < 0.01)
	}
	// Output:
	// two-step-d2: accuracy above 0.6 true, of one mind true
	// dsgd: accuracy above 0.6 true, of one mind false
}
