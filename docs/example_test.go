package docs_test

import (
	"context"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/train"
	"fspda/train/algo"
)

// Logistic regression, written with Gorgonia's operations.
type logistic struct {
	dev         device.Device
	in, classes int
}

func (m logistic) Dim() int              { return m.in * m.classes }
func (m logistic) Sizes() []int          { return []int{m.Dim()} }
func (m logistic) Init(uint64) []float32 { return make([]float32, m.Dim()) }

// run builds the graph for a batch, runs it, and returns probabilities, loss and gradient.
func (m logistic) run(x device.Vector, b device.Batch) (p, grad []float32, loss float64, err error) {
	weights, onehot := make([]float32, m.Dim()), make([]float32, b.N()*m.classes)
	m.dev.Read(weights, x)
	for i, c := range b.Y {
		onehot[i*m.classes+int(c)] = 1
	}
	g := gorgonia.NewGraph()
	leaf := func(name string, rows, cols int, v []float32) *gorgonia.Node {
		return gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName(name), gorgonia.WithValue(tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(v))))
	}
	w, y := leaf("w", m.in, m.classes, weights), leaf("y", b.N(), m.classes, onehot)
	probs := gorgonia.Must(gorgonia.SoftMax(gorgonia.Must(gorgonia.Mul(leaf("x", b.N(), m.in, b.X), w))))
	cost := gorgonia.Must(gorgonia.Neg(gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(gorgonia.Must(gorgonia.Log(probs)), y)), 1))))))
	if _, err := gorgonia.Grad(cost, w); err != nil {
		return nil, nil, 0, err
	}
	vm := gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(w))
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return nil, nil, 0, err
	}
	dw, err := w.Grad()
	if err != nil {
		return nil, nil, 0, err
	}
	return probs.Value().Data().([]float32), dw.Data().([]float32), float64(cost.Value().Data().(float32)), nil
}

func (m logistic) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	_, grad, loss, err := m.run(x, b)
	if err == nil {
		m.dev.Write(dst, grad)
	}
	return loss, err
}

func (m logistic) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	p, _, mean, err := m.run(x, b)
	if err != nil {
		return 0, 0, 0, err
	}
	for i, c := range b.Y {
		row := p[i*m.classes : (i+1)*m.classes]
		sorted := slices.Sorted(slices.Values(row))
		if row[c] >= sorted[m.classes-1] {
			hits++
		}
		if row[c] >= sorted[m.classes-5] {
			hits5++
		}
	}
	return mean * float64(b.N()), hits, hits5, nil
}

// lateGossip meets first and takes its gradient where it has come to.
type lateGossip struct{}

func (lateGossip) Name() string  { return "late-gossip" }
func (lateGossip) Aux() []string { return nil }

func (lateGossip) Local(s *algo.State, r *algo.Round) error {
	s.Send(r, s.X) // what the neighbours hear: the masked coordinates of the model
	return nil
}

func (lateGossip) Mix(s *algo.State, r *algo.Round) error {
	for _, l := range r.Links {
		if l.Heard != nil { // nil: the edge did not happen
			s.Dev.AddDiff(l.Own[0], l.Heard[0], l.Mask, device.Term{A: -0.5, V: s.X})
		}
	}
	g := s.Gradient()
	if err := r.Grad(g, s.X); err != nil {
		return err
	}
	s.Dev.Combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: g})
	return nil
}

func Example() {
	train.Register(train.Method{Name: "late-gossip", Masks: true, New: func(*train.Setup) algo.Algorithm { return lateGossip{} }})
	set, err := data.Synthetic(data.SyntheticOptions{Train: 300, Test: 100, Seed: 1})
	if err != nil {
		panic(err)
	}
	dev := cpu.New()
	net := logistic{dev, set.Features(), set.Classes}
	c := train.Default()
	c.Algo, c.Agents, c.Graph, c.Edges, c.Batch, c.Iterations, c.EvalPoints, c.Alpha = "late-gossip", 4, "ring", "matching", 32, 60, 2, 0.1
	setup, err := c.Resolve(set, net)
	if err != nil {
		panic(err)
	}
	result, err := train.Run(context.Background(), setup, train.Options{Device: dev, Model: net})
	if err != nil {
		panic(err)
	}
	last := result.Rows[len(result.Rows)-1]
	fmt.Println(result.Status, last.TestAccAvg > 0.6, last.BitsTotal > 0)
	// Output: finished true true
}
