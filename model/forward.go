package model

import (
	"fmt"

	"fspda/device"
)

// Forward lists the kernels that a network runs to predict one example, for export to other
// formats: a language model predicts the token after each one of a window. Batch norm uses the
// buffers as statistics, and no kernels are fused.
type Forward struct {
	Operations []Operation // operations in a valid execution order
	Logits     int         // the Value of the logits
}

// Operation is one kernel call. Dims and Attr are defined in package device.
type Operation struct {
	Kernel  device.Kernel
	Dims    []int
	Attr    float64
	Layer   string // its layer: "layer1.0.conv1"
	In, Out []Operand
}

// Operand is an operand of an operation.
type Operand struct {
	Value  int          // equal if and only if the operands are equal
	Space  device.Space // Input, Params, Buffers, or Arena for computed values
	Tensor string       // name of the tensor, in Params and Buffers
	Shape  []int
}

func (n *Network) Forward() (*Forward, error) {
	kind := Predict
	if n.tokens {
		kind = Score // only the logits are needed
	}
	g, err := n.Graph(1, kind, nil)
	if err != nil {
		return nil, err
	}
	l, err := lower(g)
	if err != nil {
		return nil, fmt.Errorf("model: describing %s: %w", n.name, err)
	}
	f := &Forward{Logits: l.results[0]}
	if last := len(l.steps) - 1; n.tokens {
		f.Logits, l.steps = l.steps[last].in[0], l.steps[:last]
	}
	names := g.leafNames()
	for _, s := range l.steps {
		f.Operations = append(f.Operations, Operation{Kernel: s.call.Kernel, Dims: s.call.Dims,
			Attr: s.call.Attr, Layer: s.call.Name, In: l.operands(s.in, names), Out: l.operands(s.out, names)})
	}
	return f, nil
}

// leafNames maps the addresses of the tensors to their names.
func (g *Graph) leafNames() map[device.Ref]string {
	names := map[device.Ref]string{}
	for space, layout := range map[device.Space]*Layout{device.Params: &g.builder.layout,
		device.Buffers: &g.builder.buffers} {
		for _, t := range layout.tensors {
			names[device.Ref{Space: space, Off: t.Offset, Len: t.Size}] = t.Name
		}
	}
	return names
}

func (l *lowered) operands(values []int, names map[device.Ref]string) []Operand {
	var os []Operand
	for _, v := range values {
		o := Operand{Value: v, Space: device.Arena, Shape: l.values[v].shape.Clone()}
		if l.values[v].leaf {
			o.Space, o.Tensor = l.values[v].ref.Space, names[l.values[v].ref]
		}
		os = append(os, o)
	}
	return os
}
