package model

import (
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// Host runs one kernel call on host memory: in[i] and out[i] hold the operands c.In[i] and
// c.Out[i], whose Refs are not looked at. fspda/cpu has one. A Host must write every element of out
// and must keep none of the slices.
type Host func(c *device.Call, in, out [][]float32) error

// op is one kernel call as a node's operation in a Gorgonia graph. All kernels share this one type;
// what sets them apart stands in their definition. The node's value is the kernel's output 0; a
// projection stands for each other output that is used.
type op struct {
	def      *definition
	geometry geometry // of a kernel that looks at images
	attr     float64
	serial   uint32 // unique in its graph: see Hashcode
	layer    string
	block    int  // of the forward pass; 0 is none
	backward bool // made by differentiation
	in       []tensor.Shape
	out      []tensor.Shape
	wanted   []bool // the inputs to differentiate by: differentiable, and dependent on a parameter
	b        *builder
	values   [][]float32 // the outputs of the last Do, for the projections
}

var (
	_ gorgonia.SDOp = (*op)(nil)
	_ gorgonia.SDOp = (*projection)(nil)
)

// Arity is the number of inputs.
func (o *op) Arity() int { return len(o.in) }

// Type is the function type of the operation. It is made anew by each call, because Gorgonia's type
// inference gives it back to a pool. Shapes are known, so it holds no type variable.
func (o *op) Type() hm.Type {
	types := make([]hm.Type, 0, len(o.in)+1)
	for _, s := range o.in {
		types = append(types, tensorType(s))
	}
	return hm.NewFnType(append(types, tensorType(o.out[0]))...)
}

func tensorType(s tensor.Shape) hm.Type {
	return gorgonia.TensorType{Dims: s.Dims(), Of: gorgonia.Float32}
}

// InferShape checks the shapes of the inputs and returns the shape of output 0. Gorgonia's types
// ignore rank and size, so this is where a network that does not fit together is found.
func (o *op) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	in, err := gorgonia.DimSizersToShapes(ds)
	if err != nil {
		return nil, err
	}
	out, err := o.def.shapes(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.def.kernel, err)
	}
	return out[0].Clone(), nil
}

// Do runs the kernel on tensors, for Gorgonia's own machines.
func (o *op) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	if o.b.host == nil {
		return nil, fmt.Errorf("model: %s of layer %s cannot run on Gorgonia's machine: the graph was built without a Host",
			o.def.kernel, o.layer)
	}
	in := make([][]float32, len(inputs))
	for i, v := range inputs {
		var err error
		if in[i], err = hostSlice(v, o.in[i]); err != nil {
			return nil, fmt.Errorf("model: input %d of %s in layer %s: %w", i, o.def.kernel, o.layer, err)
		}
	}
	o.values = make([][]float32, len(o.out))
	for k, s := range o.out {
		o.values[k] = make([]float32, size(s))
	}
	call := o.call()
	if err := o.b.host(&call, in, o.values); err != nil {
		return nil, fmt.Errorf("model: running %s of layer %s: %w", o.def.kernel, o.layer, err)
	}
	return denseOf(o.values[0], o.out[0]), nil
}

// call is the kernel call with operands that have lengths but no place yet.
func (o *op) call() device.Call {
	c := device.Call{Kernel: o.def.kernel, Dims: o.def.dims(o.in), Attr: o.attr, Name: o.layer}
	for _, s := range o.in {
		c.In = append(c.In, device.Ref{Len: size(s)})
	}
	for _, s := range o.out {
		c.Out = append(c.Out, device.Ref{Len: size(s)})
	}
	return c
}

// ReturnsPtr is true: Do returns memory of its own.
func (o *op) ReturnsPtr() bool { return true }

// CallsExtern is false: no cgo behind Do.
func (o *op) CallsExtern() bool { return false }

// OverwritesInput is -1: Do leaves its inputs as they are.
func (o *op) OverwritesInput() int { return -1 }

// WriteHash writes the serial, for the reason given at Hashcode.
func (o *op) WriteHash(h hash.Hash) { writeSerial(h, o.serial) }

// Hashcode is the serial of the operation. Gorgonia merges nodes whose operations have equal
// hashes, even where the attribute or an input differs by a hash collision; a serial keeps every
// node its own.
func (o *op) Hashcode() uint32 { return o.serial }

func (o *op) String() string { return fmt.Sprintf("%s#%d", o.def.kernel, o.serial) }

// DiffWRT tells which inputs to differentiate by. Inputs without a path to a parameter are left
// out, so the gradient of the examples is never built.
func (o *op) DiffWRT(int) []bool { return slices.Clone(o.wanted) }

// SymDiff returns the derivative by each wanted input as new nodes, nil for the others.
func (o *op) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	outer := o.b.layer
	// a node of the backward pass belongs to the layer whose derivative it is, and so does a panic
	o.b.layer = o.layer
	grads := make(gorgonia.Nodes, len(inputs))
	o.def.derive(derivation{b: o.b, op: o, in: inputs, out: output, grad: grad}, grads)
	o.b.layer = outer
	return grads, nil
}

func writeSerial(h hash.Hash, serial uint32) {
	h.Write(binary.LittleEndian.AppendUint32([]byte("fspda"), serial))
}

func size(s tensor.Shape) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

func denseOf(values []float32, s tensor.Shape) *tensor.Dense {
	return tensor.New(tensor.WithShape(s...), tensor.WithBacking(values))
}

// hostSlice returns the numbers of a value of known shape.
func hostSlice(v gorgonia.Value, s tensor.Shape) ([]float32, error) {
	data, ok := v.Data().([]float32)
	if !ok || len(data) != size(s) {
		return nil, fmt.Errorf("got %T of shape %v, want %d float32", v.Data(), v.Shape(), size(s))
	}
	return data, nil
}
