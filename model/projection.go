package model

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// projection is output k > 0 of a kernel: Gorgonia's nodes have one value, and its type system has
// no tuples. Its only input is the node of the kernel. It costs nothing at run time: in a plan it
// is the kernel's k-th output.
type projection struct {
	pure
	of *op
	k  int
}

// Arity is 1: the kernel's node.
func (p *projection) Arity() int { return 1 }

// Type is created anew by each call: see op.Type.
func (p *projection) Type() hm.Type {
	return hm.NewFnType(tensorType(p.of.out[0]), tensorType(p.of.out[p.k]))
}

// InferShape returns the shape of output k.
func (p *projection) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return p.of.out[p.k].Clone(), nil
}

// Do returns the kernel's output k of its last run.
func (p *projection) Do(...gorgonia.Value) (gorgonia.Value, error) {
	if p.of.values == nil {
		return nil, fmt.Errorf("model: %v is read before its kernel ran", p)
	}
	return denseOf(p.of.values[p.k], p.of.out[p.k]), nil
}

func (p *projection) String() string { return fmt.Sprintf("%v.%d", p.of, p.k) }

// DiffWRT is false: other outputs serve the backward pass and are not differentiated.
func (p *projection) DiffWRT(int) []bool { return []bool{false} }

// SymDiff returns no gradient, as DiffWRT announces.
func (p *projection) SymDiff(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) (gorgonia.Nodes, error) {
	return gorgonia.Nodes{nil}, nil
}
