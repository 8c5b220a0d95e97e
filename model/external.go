package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// ExternalName is the name of the networks that another program computes.
const ExternalName = "external"

// External describes a network that another program computes: package model/external asks the
// program. The Network that [Open] makes of it has layouts, factors and weight decay as any other,
// and no graph.
type External struct {
	Name       string           // describes the network; "" stands for external
	Parameters []ExternalTensor // They follow the order of the flat vector.
	Buffers    []ExternalTensor // Each batch norm has its running mean, then its running variance.
	Tokens     bool             // an example is a window of tokens, each with a label
}

// ExternalTensor is a tensor of an External.
type ExternalTensor struct {
	Name      string `json:"name"`
	Shape     []int  `json:"shape"`
	Norm      bool   `json:"norm,omitempty"`      // a parameter of a norm, which has no weight decay with no-norm
	Embedding bool   `json:"embedding,omitempty"` // a table of vectors
}

func (e External) empty() bool { return len(e.Parameters) == 0 }

// openExternal makes the Network of an External.
func openExternal(o Options) (*Network, error) {
	err := cmp.Or(o.refuseTransformer(ExternalName), o.refuseRecompute(ExternalName), o.Loss.validate())
	if err != nil {
		return nil, err
	}
	if o.Loss.LabelSmoothing != 0 || o.Dropout != 0 {
		return nil, fmt.Errorf("model: external: label smoothing is %v and dropout %v, but its program computes the "+
			"loss: set them to 0 here, and in the program as you like", o.Loss.LabelSmoothing, o.Dropout)
	}
	n := &Network{name: cmp.Or(o.External.Name, ExternalName), tokens: o.External.Tokens, classes: o.Classes,
		loss: o.Loss, layout: &Layout{}, buffers: &Layout{}, inputs: 1}
	for _, d := range o.Shape {
		n.inputs *= d
	}
	if len(o.Shape) > 1 {
		n.image = slices.Clone(o.Shape)
	}
	for _, part := range []struct {
		to   *Layout
		from []ExternalTensor
	}{{n.layout, o.External.Parameters}, {n.buffers, o.External.Buffers}} {
		for _, t := range part.from {
			if err := t.addTo(part.to, o.Loss.Decay); err != nil {
				return nil, fmt.Errorf("model: %s: %w", n.name, err)
			}
		}
	}
	if n.layout.dim == 0 {
		return nil, fmt.Errorf("model: %s: it has no parameters, want at least one tensor", n.name)
	}
	n.layout.markHidden()
	return n, n.decayed()
}

// addTo appends the tensor to a layout.
func (t ExternalTensor) addTo(l *Layout, decay Decay) error {
	if _, taken := l.Tensor(t.Name); t.Name == "" || taken {
		return fmt.Errorf("tensor %d has the name %q, want names that differ", len(l.tensors), t.Name)
	}
	size := 1
	for _, d := range t.Shape {
		if d < 1 || size > math.MaxInt32/d {
			return fmt.Errorf("tensor %s has the shape %v, want positive sizes with a product below 2^31", t.Name,
				t.Shape)
		}
		size *= d
	}
	made := Tensor{Name: t.Name, Shape: slices.Clone(t.Shape), Size: size, norm: t.Norm, table: t.Embedding}
	made.Decay = decay.decays(made)
	l.add(made)
	return nil
}
