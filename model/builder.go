package model

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// maxTensor is the largest number of elements of a tensor and of the parameter vector: devices use
// 32-bit indices.
const maxTensor = math.MaxInt32

// builder builds one Gorgonia graph, layer by layer. Its methods panic if a layer does not fit, as
// Gorgonia itself does. The creator of the builder defers rescue, which converts both kinds of
// panic to an error that names the layer.
type builder struct {
	graph   *gorgonia.ExprGraph
	host    Host
	kernels map[device.Kernel]*definition
	layer   string // the layer being built
	serial  uint32
	names   map[string]bool
	layout  Layout
	buffers Layout
	data    map[*gorgonia.Node]device.Space // the leaves of the batch and the momentum
	// the leaves of buffers, by their index in the buffer layout
	bufferOf map[*gorgonia.Node]int
	kind     Kind
	decay    Decay
	mixed    bool // examples have a second class: see Network.WithMixed
	counters
	backward  bool // the backward pass is being built
	updates   []bufferMove
	params    gorgonia.Nodes             // the leaves of parameters, in layout order
	factors   []float64                  // factors of the parameters' gradients; nil: 1
	constants map[*gorgonia.Node]float64 // the leaves of constants
	depends   map[*gorgonia.Node]bool    // whether a node depends on a parameter that is not frozen
}

// counters number parts of a network.
type counters struct {
	block    int // number of the current block, from 1; 0 outside of blocks
	blocks   int // number of blocks
	dropouts int // number of dropouts
}

func newBuilder(host Host) *builder {
	return &builder{
		graph:     gorgonia.NewGraph(),
		host:      host,
		kernels:   definitions(),
		names:     map[string]bool{},
		data:      map[*gorgonia.Node]device.Space{},
		bufferOf:  map[*gorgonia.Node]int{},
		constants: map[*gorgonia.Node]float64{},
		depends:   map[*gorgonia.Node]bool{},
	}
}

// rescue converts a panic to an error that names the current layer. It must be deferred.
func (b *builder) rescue(err *error) {
	r := recover()
	if r == nil {
		return
	}
	cause, ok := r.(error)
	if !ok {
		cause = fmt.Errorf("%v", r)
	}
	*err = fmt.Errorf("layer %s: %w", b.layer, cause)
}

// input adds a leaf for a part of the batch: the examples, m×features, or the labels, m.
func (b *builder) input(space device.Space, shape ...int) *gorgonia.Node {
	b.layer = space.String()
	n := b.leaf(space.String(), shape...)
	b.data[n] = space
	return n
}

// param adds the next tensor of the flat parameter vector, initialized uniformly in ±1/√fan-in.
func (b *builder) param(name string, fanIn int, shape ...int) *gorgonia.Node {
	return b.paramOf(Tensor{Name: name, Shape: shape, FanIn: fanIn})
}

// paramOf is param for a complete Tensor.
func (b *builder) paramOf(t Tensor) *gorgonia.Node {
	name := t.Name
	n := b.leaf(name, t.Shape...)
	t.Size, t.Decay = size(t.Shape), b.decay.decays(t)
	b.layout.add(t)
	if b.layout.dim > maxTensor {
		panic(fmt.Errorf("%d parameters up to %s, want at most %d: choose smaller widths", b.layout.dim, name,
			maxTensor))
	}
	b.depends[n] = b.factor(len(b.params)) != 0
	b.params = append(b.params, n)
	return n
}

// constant returns the leaf, of shape (1), that holds the number v. Derivatives fold constants into
// attributes, so plans contain none.
func (b *builder) constant(v float64) *gorgonia.Node {
	for n, c := range b.constants {
		if c == v {
			return n
		}
	}
	n := b.leaf(fmt.Sprintf("constant %v", v), 1)
	b.constants[n] = v
	return n
}

// leaf adds an input node. It checks the name because Gorgonia merges inputs of equal name and
// shape.
func (b *builder) leaf(name string, shape ...int) *gorgonia.Node {
	if b.names[name] {
		panic(fmt.Errorf("two tensors are named %q: give each layer a unique name", name))
	}
	b.names[name] = true
	checkSize(name, shape)
	return gorgonia.NewTensor(b.graph, gorgonia.Float32, len(shape), gorgonia.WithShape(shape...),
		gorgonia.WithName(name))
}

// checkSize returns the size of a shape. It panics if a device cannot index it.
func checkSize(what string, s tensor.Shape) int {
	n := 1
	for _, d := range s {
		if d < 1 || d > maxTensor/n {
			panic(fmt.Errorf("%s has shape %v, want every dimension at least 1 and at most %d elements: choose "+
				"other widths or a smaller batch", what, s, maxTensor))
		}
		n *= d
	}
	return n
}

func (b *builder) apply(k device.Kernel, attr float64, in ...*gorgonia.Node) *gorgonia.Node {
	return b.applyAs(k, geometry{}, attr, in...)
}

// applyWindow is apply for a kernel with a geometry.
func (b *builder) applyWindow(k device.Kernel, g geometry, in ...*gorgonia.Node) *gorgonia.Node {
	return b.applyAs(k, g, 0, in...)
}

func (b *builder) applyAs(k device.Kernel, g geometry, attr float64, in ...*gorgonia.Node) *gorgonia.Node {
	def := b.kernels[k]
	if def == nil || len(in) != len(def.by) {
		panic(fmt.Errorf("kernel %s applied to %d inputs: unknown kernel or wrong number of inputs", k, len(in)))
	}
	b.serial++
	o := &op{def: def, geometry: g, attr: attr, pure: pure{b.serial}, layer: b.layer, block: b.block,
		backward: b.backward, wanted: make([]bool, len(in)), b: b}
	depends := false
	for i, n := range in {
		o.in = append(o.in, n.Shape())
		o.wanted[i] = def.by[i] && b.depends[n]
		depends = depends || b.depends[n]
	}
	out, err := def.shapes(o.in, g)
	if err != nil {
		panic(fmt.Errorf("%s: %w", k, err))
	}
	for _, s := range out {
		checkSize(fmt.Sprintf("an output of %s", k), s)
	}
	o.out = out
	n := b.node(o, in...)
	b.depends[n] = depends
	return n
}

// project adds a node for output k of the kernel that n runs.
func (b *builder) project(n *gorgonia.Node, k int) *gorgonia.Node {
	b.serial++
	return b.node(&projection{of: n.Op().(*op), k: k, pure: pure{b.serial}}, n)
}

// node applies an operation, and checks that Gorgonia did not merge it with an existing node.
func (b *builder) node(o gorgonia.Op, in ...*gorgonia.Node) *gorgonia.Node {
	n, err := gorgonia.ApplyOp(o, in...)
	if err != nil {
		panic(err)
	}
	if n.Op() != o {
		panic(fmt.Errorf("gorgonia merged %v into %v, a different computation", o, n.Op()))
	}
	return n
}

// linear adds a dense layer: x·Wᵀ + b with parameters name.weight, width×inputs, and name.bias,
// width.
func (b *builder) linear(name string, x *gorgonia.Node, width int) *gorgonia.Node {
	b.layer = name
	inputs := x.Shape()[1]
	w := b.param(name+".weight", inputs, width, inputs)
	bias := b.param(name+".bias", inputs, width)
	return b.apply(device.Linear, 0, x, w, bias)
}

// activation adds an element-wise layer.
func (b *builder) activation(name string, k device.Kernel, x *gorgonia.Node) *gorgonia.Node {
	b.layer = name
	return b.apply(k, 0, x)
}

// loss adds the mean cross entropy of the logits with smoothed labels and, with weight decay,
// decay/2·Σw² over every decayed parameter.
func (b *builder) loss(logits, labels *gorgonia.Node, o LossOptions) *gorgonia.Node {
	b.layer = "loss"
	kernel := device.SoftmaxCrossEntropy
	if b.mixed {
		kernel = device.SoftmaxCrossEntropyMixed
	}
	total := b.apply(kernel, o.LabelSmoothing, logits, labels)
	for i, t := range b.layout.tensors {
		if t.Decay && o.WeightDecay != 0 {
			b.layer = t.Name
			total = b.apply(device.Add, 0, total, b.apply(device.HalfSquare, o.WeightDecay, b.params[i]))
		}
	}
	return total
}

// gradient differentiates a loss of shape (1) by every parameter, times its factor. It creates its
// own seed node: the one of gorgonia.Grad is shared by all graphs of the process.
func (b *builder) gradient(loss *gorgonia.Node) gorgonia.Nodes {
	b.layer, b.backward = "gradient", true
	if s := loss.Shape(); s.Dims() != 1 || s[0] != 1 {
		panic(fmt.Errorf("the loss has shape %v, want one number, shape (1)", s))
	}
	b.checkPaths(loss)
	var free gorgonia.Nodes
	for _, p := range b.params {
		if b.depends[p] {
			free = append(free, p)
		}
	}
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{loss}, gorgonia.Nodes{b.constant(1)}, free)
	if err != nil {
		panic(err)
	}
	return b.scaled(grads)
}

// checkPaths reports parameters without influence on the loss and kernels without derivative on a
// path to the loss; differentiation would silently skip them.
func (b *builder) checkPaths(loss *gorgonia.Node) {
	seen := map[*gorgonia.Node]bool{}
	var visit func(n *gorgonia.Node)
	visit = func(n *gorgonia.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		o, ok := n.Op().(*op)
		if !ok {
			return
		}
		for i, in := range children(b.graph, n) {
			if b.depends[in] && !o.def.by[i] {
				panic(fmt.Errorf("the loss depends on a parameter through input %d of %s in layer %s, which has "+
					"no derivative", i, o.def.kernel, o.layer))
			}
			visit(in)
		}
	}
	visit(loss)
	for i, p := range b.params {
		if !seen[p] {
			panic(fmt.Errorf("parameter %s has no path to the loss: use it or remove it", b.layout.tensors[i].Name))
		}
	}
}

// children returns the inputs of a node, in order.
func children(g *gorgonia.ExprGraph, n *gorgonia.Node) gorgonia.Nodes {
	var nodes gorgonia.Nodes
	for it := g.From(n.ID()); it != nil && it.Next(); {
		nodes = append(nodes, it.Node().(*gorgonia.Node))
	}
	return nodes
}
