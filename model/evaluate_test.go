package model

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// Evaluate runs the graph on a Gorgonia TapeMachine, with the Host that it was built with. It is
// the reference for a plan, which must give the same bits. params and grad have length Dim, grad is
// nil if the graph has no gradient, and out takes the results in the order of the plan's Code. It
// is slow and allocates.
func (g *Graph) Evaluate(params, grad []float32, batch device.Batch, out []float64) error {
	return g.EvaluateBuffered(params, grad, nil, 0, batch, out)
}

// EvaluateBuffered is Evaluate for a graph that reads buffers or updates them by momentum.
func (g *Graph) EvaluateBuffered(params, grad, buffers []float32, momentum float64, batch device.Batch,
	out []float64) error {
	if err := g.evaluate(params, grad, buffers, momentum, batch, out); err != nil {
		return fmt.Errorf("model: evaluating %s: %w", g.name, err)
	}
	return nil
}

func (g *Graph) evaluate(params, grad, buffers []float32, momentum float64, batch device.Batch, out []float64) error {
	if err := g.checkEvaluate(params, grad, buffers, batch, out); err != nil {
		return err
	}
	if err := g.let(params, buffers, momentum, batch); err != nil {
		return err
	}
	machine := gorgonia.NewTapeMachine(g.builder.graph)
	defer machine.Close()
	if err := machine.RunAll(); err != nil {
		return err
	}
	for i, n := range g.grads {
		if err := read(grad, n, g.builder.layout.tensors[i]); err != nil {
			return fmt.Errorf("gradient of %w", err)
		}
	}
	for _, u := range g.updates {
		if err := read(buffers, u.node, g.builder.buffers.tensors[u.buffer]); err != nil {
			return fmt.Errorf("buffer %w", err)
		}
	}
	for i, r := range g.results {
		values, err := hostSlice(r.node.Value(), r.node.Shape())
		if err != nil {
			return fmt.Errorf("result %s: %w", r.name, err)
		}
		out[i] = float64(values[r.off])
	}
	return nil
}

func (g *Graph) checkEvaluate(params, grad, buffers []float32, batch device.Batch, out []float64) error {
	dim, want := g.builder.layout.dim, 0
	if g.grads != nil {
		want = dim
	}
	switch {
	case len(params) != dim:
		return fmt.Errorf("%d parameters, want %d", len(params), dim)
	case len(grad) != want:
		return fmt.Errorf("gradient vector of length %d, want %d", len(grad), want)
	case len(buffers) != g.buffered():
		return fmt.Errorf("buffer vector of length %d, want %d", len(buffers), g.buffered())
	case len(out) != len(g.results):
		return fmt.Errorf("out has length %d, want %d", len(out), len(g.results))
	}
	return batch.Check(g.codeOf())
}

// let assigns every leaf its value.
func (g *Graph) let(params, buffers []float32, momentum float64, batch device.Batch) error {
	labels := make([]float32, g.codeOf().LabelNumbers())
	batch.Labels(labels)
	for n, space := range g.builder.data {
		values := batch.Numbers(nil, g.features)
		switch space {
		case device.Labels:
			values = labels
		case device.Key:
			values = make([]float32, 4)
			batch.KeyNumbers(values)
		case device.Momentum:
			values = []float32{float32(momentum)}
		}
		if err := let(n, values); err != nil {
			return err
		}
	}
	for i, n := range g.builder.params {
		t := g.builder.layout.tensors[i]
		if err := let(n, params[t.Offset:t.Offset+t.Size]); err != nil {
			return err
		}
	}
	for n, i := range g.builder.bufferOf {
		t := g.builder.buffers.tensors[i]
		if err := let(n, buffers[t.Offset:t.Offset+t.Size]); err != nil {
			return err
		}
	}
	for n, c := range g.builder.constants {
		if err := let(n, []float32{float32(c)}); err != nil {
			return err
		}
	}
	return nil
}
