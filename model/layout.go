package model

import (
	"fmt"
	"slices"
)

// Tensor is one named tensor inside a flat vector.
type Tensor struct {
	Name string // unique in its network: "fc1.weight"
	// row-major; a weight is outputs × inputs, a filter outputs × height × width × inputs
	Shape  []int
	Axes   Axes // the order of the axes, if PyTorch orders them differently
	Offset int  // index of its first element in the flat vector
	Size   int  // the product of Shape
	Decay  bool // subject to weight decay
	FanIn  int  // number of inputs per output, for initialization
	// the names of the tensors that this one consists of in files, each with as many rows; nil: itself
	Parts []string

	// Hidden says that the tensor is the weights of a layer, a matrix of outputs × rest, and neither
	// an embedding nor the last layer of a network without embeddings.
	Hidden bool
	// Blocks is the number of matrices that the weights are, with equal numbers of rows, one below
	// the other; 0 stands for 1.
	Blocks int

	norm  bool  // the parameter belongs to a batch norm
	table bool  // an embedding
	start start // initial values
}

// Axes names the order of the axes of a tensor. It is empty if PyTorch uses the same order.
type Axes string

// OHWI is the order of a filter: outputs, height, width, inputs. PyTorch and its files use OIHW.
const OHWI Axes = "OHWI"

// Layout maps the tensors of a network to a flat vector: one layout for parameters, another for
// buffers. Tensors follow each other without padding, in the order in which the network creates
// them, so the length of the vector is the number of parameters, and other programs can read a
// saved vector. A Layout is immutable.
type Layout struct {
	tensors []Tensor
	dim     int
}

// markHidden sets Hidden. The last weights belong to the last layer, unless an embedding is it.
func (l *Layout) markHidden() {
	last, tables := -1, false
	for i, t := range l.tensors {
		l.tensors[i].Hidden = len(t.Shape) > 1 && !t.table
		if tables = tables || t.table; l.tensors[i].Hidden {
			last = i
		}
	}
	if last >= 0 && !tables {
		l.tensors[last].Hidden = false
	}
}

// Dim is the length of the flat vector.
func (l *Layout) Dim() int { return l.dim }

// Tensors returns a copy of the list of tensors, in flat order.
func (l *Layout) Tensors() []Tensor {
	tensors := slices.Clone(l.tensors)
	for i := range tensors {
		tensors[i].Shape = slices.Clone(tensors[i].Shape)
	}
	return tensors
}

// Parts returns the list of tensors as files have them, in flat order: those with Parts are split.
func (l *Layout) Parts() []Tensor {
	var all []Tensor
	for _, t := range l.Tensors() {
		if t.Parts == nil {
			all = append(all, t)
			continue
		}
		part, n := t, len(t.Parts)
		part.Size, part.Parts = t.Size/n, nil
		for i, name := range t.Parts {
			part.Name, part.Offset = name, t.Offset+i*part.Size
			part.Shape = slices.Clone(t.Shape)
			part.Shape[0] /= n
			all = append(all, part)
		}
	}
	return all
}

// sizes lists the lengths of the tensors in flat order.
func (l *Layout) sizes() []int {
	var sizes []int
	for _, t := range l.tensors {
		sizes = append(sizes, t.Size)
	}
	return sizes
}

func (l *Layout) Tensor(name string) (Tensor, bool) {
	for _, t := range l.tensors {
		if t.Name == name {
			t.Shape = slices.Clone(t.Shape)
			return t, true
		}
	}
	return Tensor{}, false
}

// View returns the part of a flat vector that holds the named tensor; it shares memory with flat.
// It panics if flat does not have length Dim or the tensor does not exist.
func (l *Layout) View(flat []float32, name string) []float32 {
	if len(flat) != l.dim {
		panic(fmt.Sprintf("model: View of a vector of length %d, want %d", len(flat), l.dim))
	}
	t, ok := l.Tensor(name)
	if !ok {
		panic(fmt.Sprintf("model: View: the network has no tensor %q", name))
	}
	return flat[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// add appends a tensor. The builder has checked its name and its size.
func (l *Layout) add(t Tensor) {
	t.Offset = l.dim
	l.tensors = append(l.tensors, t)
	l.dim += t.Size
}
