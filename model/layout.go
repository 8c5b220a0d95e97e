package model

import (
	"fmt"
	"slices"
)

// Tensor is one named parameter tensor inside the flat parameter vector.
type Tensor struct {
	Name string // unique in its network: "fc1.weight"
	// row-major; a weight is outputs × inputs, a filter outputs × height × width × inputs
	Shape  []int
	Axes   Axes // in which order Shape has its axes, where other programs have another
	Offset int  // of its first number in the flat vector
	Size   int  // the product of Shape
	Decay  bool // whether weight decay applies to it
	FanIn  int  // inputs of one output: what initialisation scales with

	start start // how Init fills it
}

// Axes says what the axes of a tensor are. It is empty where nobody orders them otherwise.
type Axes string

// OHWI is the order of a filter: outputs, height, width, inputs. PyTorch and its files have OIHW.
const OHWI Axes = "OHWI"

// Layout says where each tensor of a network lies in its flat vector: parameters in one, buffers in
// another. Tensors follow each other without padding, in the order in which the network creates
// them, so that the length of the vector is the number of parameters and a saved vector can be read
// by other programs. A Layout is immutable.
type Layout struct {
	tensors []Tensor
	dim     int
}

// Dim is the number of numbers: the length of the flat vector.
func (l *Layout) Dim() int { return l.dim }

// Tensors returns the tensors in flat order. The slice is the caller's.
func (l *Layout) Tensors() []Tensor {
	tensors := slices.Clone(l.tensors)
	for i := range tensors {
		tensors[i].Shape = slices.Clone(tensors[i].Shape)
	}
	return tensors
}

// sizes lists the lengths of the tensors in flat order.
func (l *Layout) sizes() []int {
	var sizes []int
	for _, t := range l.tensors {
		sizes = append(sizes, t.Size)
	}
	return sizes
}

// Tensor returns the tensor of that name, and whether there is one.
func (l *Layout) Tensor(name string) (Tensor, bool) {
	for _, t := range l.tensors {
		if t.Name == name {
			t.Shape = slices.Clone(t.Shape)
			return t, true
		}
	}
	return Tensor{}, false
}

// View returns the part of a flat vector that holds the tensor of that name; it shares memory with
// flat. It panics if flat has not length Dim or there is no such tensor.
func (l *Layout) View(flat []float32, name string) []float32 {
	if len(flat) != l.dim {
		panic(fmt.Sprintf("model: View of a vector of length %d, want %d", len(flat), l.dim))
	}
	t, ok := l.Tensor(name)
	if !ok {
		panic(fmt.Sprintf("model: View of tensor %q, which the network does not have", name))
	}
	return flat[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// add appends a tensor. The builder has checked its name and its size.
func (l *Layout) add(t Tensor) Tensor {
	t.Offset = l.dim
	l.tensors = append(l.tensors, t)
	l.dim += t.Size
	return t
}
