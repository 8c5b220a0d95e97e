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
// c.Out[i], whose Refs are ignored. fspda/cpu provides one. A Host must write every element of out
// and must not retain the slices.
type Host func(c *device.Call, in, out [][]float32) error

// op is one kernel call as an operation of a Gorgonia graph. All kernels share this type and differ
// in their definition. The node's value is the kernel's output 0; a projection represents each
// other output that is used.
type op struct {
	pure
	def      *definition
	geometry geometry // geometry of window kernels
	attr     float64
	layer    string
	block    int  // block of the forward pass; 0: none
	backward bool // created by differentiation
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

func (o *op) Arity() int { return len(o.in) }

// Type returns the function type of the operation. It creates a new one each time, because
// Gorgonia's type inference returns it to a pool. Shapes are known, so it has no type variable.
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
// ignore rank and size, so shape errors are found here.
func (o *op) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	in, err := gorgonia.DimSizersToShapes(ds)
	if err != nil {
		return nil, err
	}
	out, err := o.def.shapes(in, o.geometry)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.def.kernel, err)
	}
	return out[0].Clone(), nil
}

// Do runs the kernel on tensors, for Gorgonia's own machines.
func (o *op) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	if o.b.host == nil {
		return nil, fmt.Errorf("model: %s of layer %s cannot run on Gorgonia's machine: the graph was built without "+
			"a Host", o.def.kernel, o.layer)
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

// call returns the kernel call, whose operands have lengths but no addresses yet.
func (o *op) call() device.Call {
	c := device.Call{Kernel: o.def.kernel, Dims: o.def.callDims(o.in, o.geometry), Attr: o.attr, Name: o.layer}
	for _, s := range o.in {
		c.In = append(c.In, device.Ref{Len: size(s)})
	}
	for _, s := range o.out {
		c.Out = append(c.Out, device.Ref{Len: size(s)})
	}
	return c
}

func (o *op) String() string { return fmt.Sprintf("%s#%d", o.def.kernel, o.serial) }

// DiffWRT returns the inputs to differentiate by. Inputs that depend on no parameter are excluded,
// so the gradient of the examples is never built.
func (o *op) DiffWRT(int) []bool { return slices.Clone(o.wanted) }

// SymDiff returns the derivative by each wanted input as new nodes, nil for the others.
func (o *op) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	outer := o.b.layer
	// attribute nodes and panics of the backward pass to the layer being differentiated
	o.b.layer = o.layer
	grads := make(gorgonia.Nodes, len(inputs))
	o.def.derive(derivation{b: o.b, op: o, in: inputs, out: output, grad: grad}, grads)
	o.b.layer = outer
	return grads, nil
}

// pure holds promises of all operations to Gorgonia: they return new memory, call no foreign code,
// do not change their inputs, and are told apart by a serial number that is unique in their graph.
type pure struct{ serial uint32 }

func (pure) ReturnsPtr() bool     { return true }
func (pure) CallsExtern() bool    { return false }
func (pure) OverwritesInput() int { return -1 }

// Hashcode is the serial number of the operation. Gorgonia merges nodes whose operations have equal
// hashes, even if an attribute or an input differs; unique serial numbers prevent that.
func (p pure) Hashcode() uint32 { return p.serial }

// WriteHash writes the serial, for the reason given at Hashcode.
func (p pure) WriteHash(h hash.Hash) {
	h.Write(binary.LittleEndian.AppendUint32([]byte("fspda"), p.serial))
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
