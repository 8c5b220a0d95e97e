package model

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// Graph is a network at one batch size as a Gorgonia graph of kernels, the source of a plan. It
// belongs to one goroutine at a time.
type Graph struct {
	name     string
	kind     Kind
	batch    int
	features int
	labels   int // labels of one example
	results  []result
	grads    gorgonia.Nodes // gradients by parameter; nil if the graph is not differentiated
	updates  []bufferMove

	recompute bool // drop the intermediate values of blocks and recompute them in the backward pass
	builder   *builder
}

// result is element off of a node, with a name.
type result struct {
	name string
	node *gorgonia.Node
	off  int
}

func read(flat []float32, n *gorgonia.Node, t Tensor) error {
	values, err := hostSlice(n.Value(), t.Shape)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	copy(flat[t.Offset:], values)
	return nil
}

// let assigns a leaf its value: a copy, because Gorgonia's machine may overwrite its inputs.
func let(n *gorgonia.Node, values []float32) error {
	return gorgonia.Let(n, tensor.New(tensor.WithShape(n.Shape()...), tensor.WithBacking(slices.Clone(values))))
}

// codeOf returns Code without calls, which batches of the graph fit.
func (g *Graph) codeOf() *device.Code {
	return &device.Code{Name: g.name, Batch: g.batch, Features: g.features, Labels: g.labels, Mixed: g.builder.mixed,
		Gradient: g.grads != nil}
}

// buffered returns the length of the buffer vector, or 0 if the graph uses no buffers.
func (g *Graph) buffered() int {
	if len(g.builder.bufferOf) == 0 {
		return 0
	}
	return g.builder.buffers.dim
}
