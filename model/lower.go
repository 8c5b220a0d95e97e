package model

import (
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// value is one output of a step, or a leaf.
type value struct {
	shape tensor.Shape
	leaf  bool
	ref   device.Ref // its address: known for a leaf, assigned by the plan for all others
}

// step is a kernel call on values, given by their index.
type step struct {
	call    device.Call // In and Out are empty until addresses are assigned
	in, out []int

	block    int  // its block in the forward pass, also in the backward pass; 0: none
	backward bool // belongs to the backward pass
}

// lowered is a graph as a list of steps in a valid execution order.
type lowered struct {
	values  []value
	steps   []step
	results []int // the value of each result of the graph
	grads   []int // the value of each parameter's gradient
	updates []fixedValue
}

// fixedValue is a value with a prescribed address: the new value of a buffer overwrites the old
// one.
type fixedValue struct {
	value int
	ref   device.Ref
}

// lowering is the state of the conversion.
type lowering struct {
	lowered
	graph *Graph
	of    map[*gorgonia.Node]int // the value of a node; output k of a kernel is k values later
}

// lower converts the nodes that results and gradients depend on to steps, in the order of
// Gorgonia's node numbers, which increase from inputs to outputs.
func lower(g *Graph) (*lowered, error) {
	l := &lowering{graph: g, of: map[*gorgonia.Node]int{}}
	needed := l.needed()
	for _, n := range g.builder.graph.AllNodes() {
		if !needed[n] {
			continue
		}
		if err := l.add(n); err != nil {
			return nil, err
		}
	}
	for _, r := range g.results {
		l.results = append(l.results, l.of[r.node])
	}
	for _, n := range g.grads {
		l.grads = append(l.grads, l.of[n])
	}
	for _, u := range g.updates {
		t := g.builder.buffers.tensors[u.buffer]
		l.updates = append(l.updates, fixedValue{l.of[u.node], device.Ref{Space: device.Buffers, Off: t.Offset,
			Len: t.Size}})
	}
	return &l.lowered, nil
}

// needed marks the nodes that results and gradients depend on.
func (l *lowering) needed() map[*gorgonia.Node]bool {
	marked := map[*gorgonia.Node]bool{}
	var mark func(n *gorgonia.Node)
	mark = func(n *gorgonia.Node) {
		if !marked[n] {
			marked[n] = true
			for _, in := range children(l.graph.builder.graph, n) {
				mark(in)
			}
		}
	}
	for _, r := range l.graph.results {
		mark(r.node)
	}
	for _, n := range l.graph.grads {
		mark(n)
	}
	for _, u := range l.graph.updates {
		mark(u.node)
	}
	return marked
}

// add appends the value of a node and, unless the node is a leaf or a projection, its step.
func (l *lowering) add(n *gorgonia.Node) error {
	in := children(l.graph.builder.graph, n)
	switch o := n.Op().(type) {
	case nil:
		return l.leaf(n)
	case *op:
		l.step(n, o.call(), in, o.out)
		s := &l.steps[len(l.steps)-1]
		s.block, s.backward = o.block, o.backward
	case *projection:
		l.of[n] = l.of[in[0]] + o.k
	default:
		if !isSum(o) || len(in) != 2 {
			return fmt.Errorf("gorgonia added the operation %v, which no kernel implements", o)
		}
		call := device.Call{Kernel: device.Add, Dims: []int{size(n.Shape())}, Name: l.layerOf(in)}
		l.step(n, call, in, []tensor.Shape{in[0].Shape()})
		l.steps[len(l.steps)-1].backward = true
	}
	return nil
}

// isSum recognizes the addition by which Gorgonia sums the gradients of a node with several uses.
// Its type is not exported, and it is the only operation that differentiation itself adds.
func isSum(o gorgonia.Op) bool { return strings.HasPrefix(o.String(), "+ ") }

// layerOf names the layer of a sum: the last summand's.
func (l *lowering) layerOf(nodes gorgonia.Nodes) string {
	for _, n := range slices.Backward(nodes) {
		for _, s := range l.steps {
			if slices.Contains(s.out, l.of[n]) {
				return s.call.Name
			}
		}
	}
	return "gradient"
}

func (l *lowering) leaf(n *gorgonia.Node) error {
	b := l.graph.builder
	v := value{shape: n.Shape(), leaf: true, ref: device.Ref{Len: size(n.Shape())}}
	if c, ok := b.constants[n]; ok {
		return fmt.Errorf("a kernel of the backward pass reads the constant %v, which plans cannot hold: "+
			"let the loss end in %s or %s", c, device.SoftmaxCrossEntropy, device.HalfSquare)
	}
	if space, ok := b.data[n]; ok {
		v.ref.Space = space
	} else if i, ok := b.bufferOf[n]; ok {
		v.ref.Space, v.ref.Off = device.Buffers, b.buffers.tensors[i].Offset
	} else {
		v.ref.Space = device.Params
		v.ref.Off = b.layout.tensors[slices.Index(b.params, n)].Offset
	}
	l.of[n] = len(l.values)
	l.values = append(l.values, v)
	return nil
}

func (l *lowering) step(n *gorgonia.Node, call device.Call, in gorgonia.Nodes, out []tensor.Shape) {
	call.In, call.Out = nil, nil
	s := step{call: call}
	for _, i := range in {
		s.in = append(s.in, l.of[i])
	}
	l.of[n] = len(l.values)
	for _, shape := range out {
		s.out = append(s.out, len(l.values))
		l.values = append(l.values, value{shape: shape.Clone(), ref: device.Ref{Len: size(shape)}})
	}
	l.steps = append(l.steps, s)
}

// uses counts the reads of each value: by steps, as a result, as a gradient.
func (l *lowered) uses() []int {
	n := make([]int, len(l.values))
	for _, s := range l.steps {
		for _, v := range s.in {
			n[v]++
		}
	}
	for _, v := range slices.Concat(l.results, l.grads) {
		n[v]++
	}
	for _, u := range l.updates {
		n[u.value]++
	}
	return n
}

// fuse replaces the two steps of y = a + c·b by one kernel, if c·b has no other reader. The kernel
// rounds the product first, so results are bit-identical. Weight decay thus needs no extra pass and
// buffer.
func (l *lowered) fuse() {
	uses := l.uses()
	scaledBy := map[int]int{} // maps the value of a Scale to its step
	fused := make([]bool, len(l.steps))
	for i, s := range l.steps {
		if s.call.Kernel == device.Scale && uses[s.out[0]] == 1 {
			scaledBy[s.out[0]] = i
		}
		if s.call.Kernel != device.Add {
			continue
		}
		for side := 1; side >= 0; side-- {
			if j, ok := scaledBy[s.in[side]]; ok {
				scale := l.steps[j].call
				l.steps[i].call.Kernel, l.steps[i].call.Attr, l.steps[i].call.Name = device.AddScaled,
					scale.Attr, scale.Name
				l.steps[i].in = []int{s.in[1-side], l.steps[j].in[0]}
				fused[j] = true
				break
			}
		}
	}
	l.remove(fused)
}
