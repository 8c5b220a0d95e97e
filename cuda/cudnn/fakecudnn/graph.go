package fakecudnn

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// What calls return.
const (
	badParameter cudnn.Status = 2000
	notSupported cudnn.Status = 3000
)

// Engine is one that a Graph offers.
type Engine struct {
	cudnn.Engine
	Numerical, Behaviour []int32
	Memory               int64        // of a plan's workspace
	Unmade               bool         // it is offered, and no plan can be made of it
	Refuses              cudnn.Status // of executions
}

// Convolution is what a plan computes.
type Convolution struct {
	cudnn.Direction
	cudnn.Type
	X, W, Y     [4]int64 // n, c, h, w
	Stride, Pad int64
	Aligned     int64 // of the least aligned operand, in bytes
}

// Graph is the graph API. It is for one thread.
type Graph struct {
	// Offered are the engines that heuristic A advises for a convolution, best first, and Fallback
	// those that the fallback does.
	Offered, Fallback func(c Convolution) []Engine
	// Compute is what an execution does. Workspace is 0 where none was given.
	Compute func(c Convolution, by Engine, x, w, y, workspace driver.Pointer) cudnn.Status
	Faults  []string // what was done wrong

	next     cudnn.Node
	nodes    map[cudnn.Node]*node
	Executed int // plans
}

// node is a descriptor.
type node struct {
	of       cudnn.DescriptorType
	set      map[cudnn.Attribute][]uint64
	complete bool
	engine   *Engine // of a configuration or an engine that heuristics filled in
}

// Left is how many descriptors there are.
func (g *Graph) Left() int { return len(g.nodes) }

// Backend is the graph as the library's functions.
func (g *Graph) Backend() *cudnn.Backend {
	if g.nodes == nil {
		g.nodes = map[cudnn.Node]*node{}
	}
	return &cudnn.Backend{Create: g.create, Destroy: g.destroy, Finalize: g.finalize, Set: g.set, Get: g.get,
		Execute: g.execute}
}

// wrong notes a fault.
func (g *Graph) wrong(format string, args ...any) cudnn.Status {
	g.Faults = append(g.Faults, fmt.Sprintf(format, args...))
	return badParameter
}

func (g *Graph) create(of cudnn.DescriptorType, out *cudnn.Node) cudnn.Status {
	if settable[of] == nil {
		return g.wrong("there is no descriptor of type %d", of)
	}
	g.next += 16
	g.nodes[g.next] = &node{of: of, set: map[cudnn.Attribute][]uint64{}}
	*out = g.next
	return 0
}

func (g *Graph) destroy(d cudnn.Node) cudnn.Status {
	if g.nodes[d] == nil {
		return g.wrong("descriptor %d is given back, and is none", d)
	}
	delete(g.nodes, d)
	return 0
}

func (g *Graph) set(d cudnn.Node, name cudnn.Attribute, of cudnn.AttributeType, n int64,
	values unsafe.Pointer) cudnn.Status {
	x := g.nodes[d]
	if x == nil || x.complete {
		return g.wrong("attribute %d of a descriptor that is none or complete", name)
	}
	rule, ok := settable[x.of][name]
	switch {
	case !ok:
		return g.wrong("a descriptor of type %d has no attribute %d", x.of, name)
	case of != rule.of || int(n) < rule.least || int(n) > rule.most:
		return g.wrong("attribute %d: %d values of type %d, expected %d to %d of type %d", name, n, of, rule.least,
			rule.most, rule.of)
	case x.set[name] != nil:
		return g.wrong("attribute %d is set twice", name)
	}
	all := words(unsafe.Slice((*byte)(values), int(n)*bytesOf(of)), bytesOf(of))
	if of == cudnn.NodeValue {
		for _, v := range all {
			if to := g.nodes[cudnn.Node(v)]; to == nil || !to.complete || rule.node != 0 && to.of != rule.node {
				return g.wrong("attribute %d is a descriptor that is none, not complete or of another type than %d",
					name, rule.node)
			}
		}
	}
	x.set[name] = all
	return 0
}

// words reads values of a size.
func words(b []byte, size int) (all []uint64) {
	for ; len(b) >= size; b = b[size:] {
		var w [8]byte
		copy(w[:], b[:size])
		all = append(all, binary.NativeEndian.Uint64(w[:]))
	}
	return all
}

func (g *Graph) finalize(d cudnn.Node) cudnn.Status {
	x := g.nodes[d]
	if x == nil || x.complete {
		return g.wrong("a descriptor that is none, or complete, is completed")
	}
	for name, rule := range settable[x.of] {
		if x.set[name] == nil && !rule.optional {
			return g.wrong("a descriptor of type %d lacks attribute %d", x.of, name)
		}
	}
	if s := g.admit(x); s != 0 {
		return s
	}
	x.complete = true
	return 0
}

// admit says what the library does of values.
func (g *Graph) admit(x *node) cudnn.Status {
	switch x.of {
	case cudnn.TensorNode:
		dims, strides := x.set[cudnn.TensorDimensions], x.set[cudnn.TensorStrides]
		n, c, h, w := dims[0], dims[1], dims[2], dims[3]
		if int64(n) <= 0 || int64(c) <= 0 || int64(h) <= 0 || int64(w) <= 0 {
			return badParameter // a caller may ask for what there is not
		}
		if !slices.Equal(strides, []uint64{h * w * c, 1, w * c, c}) {
			return g.wrong("strides %v of %v are not those of channels that lie last", strides, dims)
		}
	case cudnn.EngineConfigNode:
		x.engine = g.kept(x)
		if x.engine == nil {
			return notSupported
		}
	case cudnn.PlanNode:
		if g.nodes[cudnn.Node(x.set[cudnn.PlanConfig][0])].engine.Unmade {
			return notSupported
		}
	}
	return 0
}

// kept is the engine that a caller has described, nil for none.
func (g *Graph) kept(x *node) *Engine {
	engine := g.nodes[cudnn.Node(x.set[cudnn.ConfigEngine][0])]
	if engine.engine != nil {
		return engine.engine
	}
	want := cudnn.Engine{Index: int64(engine.set[cudnn.EngineIndex][0])}
	for _, k := range x.set[cudnn.ConfigKnobs] {
		knob := g.nodes[cudnn.Node(k)].set
		want.Knobs = append(want.Knobs, cudnn.Knob{Type: int32(knob[cudnn.KnobType][0]),
			Value: int64(knob[cudnn.KnobChoice][0])})
	}
	c := g.convolution(g.nodes[cudnn.Node(engine.set[cudnn.EngineGraph][0])])
	for _, e := range append(g.Offered(c), g.Fallback(c)...) {
		if e.String() == want.String() {
			return &e
		}
	}
	return nil
}
