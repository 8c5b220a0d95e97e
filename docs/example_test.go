package docs_test

import (
	"context"
	"fmt"

	"gorgonia.org/gorgonia"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/model"
	"fspda/train"
	"fspda/train/algo"
)

// lateGossip meets first, and takes its gradient where it has come to.
type lateGossip struct{}

func (lateGossip) Name() string { return "late-gossip" }

// Traits: it has no vector to remember besides the model, and admits any edges and masks.
func (lateGossip) Traits() algo.Traits {
	return algo.Traits{Exchange: algo.Exchange{Edges: algo.AnyEdges, Masks: true}}
}

func (lateGossip) Local(s *algo.State, r *algo.Round) error {
	s.Send(r, s.X) // to every neighbour: the coordinates of the mask
	return nil
}

func (lateGossip) Mix(s *algo.State, r *algo.Round) error {
	s.AddDifferences(r, 0, algo.UnitWeight, device.Term{A: -0.5, V: s.X}) // half way to each neighbour that was heard
	g := s.Gradient()
	err := r.Grad(g, s.X)
	s.Dev.Do(device.Combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: g}))
	return err
}

// logits is the network, of Gorgonia's own operations: a hidden layer of rectified units.
func logits(param model.Param, x *gorgonia.Node) *gorgonia.Node {
	hidden := gorgonia.Must(gorgonia.Rectify(gorgonia.Must(gorgonia.Mul(x, param("w1", 784, 20)))))
	return gorgonia.Must(gorgonia.Mul(hidden, param("w2", 20, 10)))
}

func Example() {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 300, Test: 100, Seed: 1})
	check(err)
	net, err := model.NewTape(cpu.New(), model.TapeOptions{Inputs: set.Features(), Classes: set.Classes,
		Forward: logits})
	check(err)
	train.Register(train.Method{Name: "late-gossip",
		New: func(algo.Settings) algo.Algorithm { return lateGossip{} }})
	c := train.Default()
	c.Algo, c.Agents, c.Graph, c.Edges = "late-gossip", 4, "ring", "matching"
	c.Batch, c.Iterations, c.EvalPoints, c.Alpha = 32, 60, 2, 0.1
	setup, err := c.Resolve(set, net)
	check(err)
	result, err := train.Run(context.Background(), setup, train.Options{Device: cpu.New(), Model: net})
	check(err)
	last := result.Rows[len(result.Rows)-1]
	fmt.Println(result.Status, last.TestAccAvg > 0.6, last.BitsTotal > 0)
	// Output: finished true true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
