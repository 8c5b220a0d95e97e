package model

import (
	"fmt"

	"fspda/device"
)

// Forward is what a network computes of one example to predict, kernel by kernel: for programs that
// write it down in another language. Batch norm takes the buffers as statistics, and no two kernels
// are fused.
type Forward struct {
	Operations []Operation // in an order in which they can run
	Logits     int         // the Value of the logits
}

// Operation is one kernel of it. Dims and Attr have the meaning of package device.
type Operation struct {
	Kernel  device.Kernel
	Dims    []int
	Attr    float64
	Layer   string // that it belongs to: "layer1.0.conv1"
	In, Out []Operand
}

// Operand is what an operation reads or writes.
type Operand struct {
	Value  int          // equal for equal operands, and for no others
	Space  device.Space // Input, Params, Buffers, or Arena for what is computed
	Tensor string       // its name, in Params and Buffers
	Shape  []int
}

// Forward describes the network.
func (n *Network) Forward() (*Forward, error) {
	g, err := n.Graph(1, Predict, nil)
	if err != nil {
		return nil, err
	}
	l, err := lower(g)
	if err != nil {
		return nil, fmt.Errorf("model: describing %s: %w", n.name, err)
	}
	f := &Forward{Logits: l.results[0]}
	names := g.leafNames()
	for _, s := range l.steps {
		f.Operations = append(f.Operations, Operation{Kernel: s.call.Kernel, Dims: s.call.Dims, Attr: s.call.Attr,
			Layer: s.call.Name,
			In:    l.operands(s.in, names), Out: l.operands(s.out, names)})
	}
	return f, nil
}

// leafNames are the names of the tensors by where they lie.
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
