package fakecudnn

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// Status codes of calls.
const (
	badParameter cudnn.Status = 2000
	notSupported cudnn.Status = 3000
)

// Engine is an engine that a Graph offers.
type Engine struct {
	cudnn.Engine
	Numerical, Behaviour []int32
	Memory               int64        // workspace of a plan in bytes
	Unmade               bool         // offered, but no plan can be made of it
	Refuses              cudnn.Status // status of executions
}

// Convolution describes the computation of a plan.
type Convolution struct {
	cudnn.Direction
	cudnn.Type
	X, W, Y     [4]int64 // n, c, h, w
	Stride, Pad int64
	Alignment   int64 // alignment of the least aligned operand, in bytes
}

// Graph implements the graph API. It is for one thread.
type Graph struct {
	// Offered returns the engines that heuristic A recommends for a convolution, best first, and
	// Fallback the engines of the fallback heuristic.
	Offered, Fallback func(c Convolution) []Engine
	// Compute executes a plan. Workspace is 0 if none was given.
	Compute func(c Convolution, by Engine, x, w, y, workspace driver.Pointer) cudnn.Status
	// OfferedFlow and ComputeFlow are Offered and Compute for graphs of several operations.
	OfferedFlow func(f *Flow) []Engine
	ComputeFlow func(f *Flow, by Engine, workspace driver.Pointer) cudnn.Status
	Faults      []string // misuses of the API

	next     cudnn.Node
	nodes    map[cudnn.Node]*node
	Executed int // number of plans executed
}

// node is a descriptor.
type node struct {
	of        cudnn.DescriptorType
	set       map[cudnn.Attribute][]uint64
	finalized bool
	engine    *Engine // engine of a configuration or engine that a heuristic filled in
}

// Live returns the number of descriptors that are not destroyed.
func (g *Graph) Live() int { return len(g.nodes) }

// Backend returns the graph as the library's table of functions.
func (g *Graph) Backend() *cudnn.Backend {
	if g.nodes == nil {
		g.nodes = map[cudnn.Node]*node{}
	}
	return &cudnn.Backend{Create: g.create, Destroy: g.destroy, Finalize: g.finalize, Set: g.set, Get: g.get,
		Execute: g.execute}
}

// fault records a misuse.
func (g *Graph) fault(format string, args ...any) cudnn.Status {
	g.Faults = append(g.Faults, fmt.Sprintf(format, args...))
	return badParameter
}

func (g *Graph) create(of cudnn.DescriptorType, out *cudnn.Node) cudnn.Status {
	if settable[of] == nil {
		return g.fault("descriptor type %d does not exist", of)
	}
	g.next += 16
	g.nodes[g.next] = &node{of: of, set: map[cudnn.Attribute][]uint64{}}
	*out = g.next
	return 0
}

func (g *Graph) destroy(d cudnn.Node) cudnn.Status {
	if g.nodes[d] == nil {
		return g.fault("destroying descriptor %d, which does not exist", d)
	}
	delete(g.nodes, d)
	return 0
}

func (g *Graph) set(d cudnn.Node, name cudnn.Attribute, of cudnn.AttributeType, n int64,
	values unsafe.Pointer) cudnn.Status {
	x := g.nodes[d]
	if x == nil || x.finalized {
		return g.fault("setting attribute %d of a descriptor that does not exist or is finalized", name)
	}
	rule, ok := settable[x.of][name]
	switch {
	case !ok:
		return g.fault("a descriptor of type %d has no attribute %d", x.of, name)
	case of != rule.of || int(n) < rule.least || int(n) > rule.most:
		return g.fault("attribute %d: %d values of type %d, want %d to %d of type %d", name, n, of, rule.least,
			rule.most, rule.of)
	case x.set[name] != nil:
		return g.fault("attribute %d is set twice", name)
	}
	all := words(unsafe.Slice((*byte)(values), int(n)*bytesOf(of)), bytesOf(of))
	if of == cudnn.NodeValue {
		for _, v := range all {
			if to := g.nodes[cudnn.Node(v)]; to == nil || !to.finalized || rule.node != 0 && to.of != rule.node {
				return g.fault("attribute %d is not a finalized descriptor of type %d", name, rule.node)
			}
		}
	}
	x.set[name] = all
	return 0
}

// words reads values of a size in bytes.
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
	if x == nil || x.finalized {
		return g.fault("finalizing a descriptor that does not exist or is finalized")
	}
	for name, rule := range settable[x.of] {
		if x.set[name] == nil && !rule.optional {
			return g.fault("a descriptor of type %d lacks attribute %d", x.of, name)
		}
	}
	if s := g.checkNode(x); s != 0 {
		return s
	}
	x.finalized = true
	return 0
}

// checkNode checks the values of a node as the library does.
func (g *Graph) checkNode(x *node) cudnn.Status {
	switch x.of {
	case cudnn.TensorNode:
		for _, n := range x.set[cudnn.TensorDimensions] {
			if int64(n) <= 0 {
				return badParameter // not a fault: a caller may ask for invalid shapes
			}
		}
	case cudnn.GraphNode:
		if g.isConvolution(x) {
			return g.checkConvolution(x)
		}
	case cudnn.EngineConfigNode:
		x.engine = g.storedEngine(x)
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

// storedEngine returns the engine that the caller has described, or nil.
func (g *Graph) storedEngine(x *node) *Engine {
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
	for _, e := range g.all(g.nodes[cudnn.Node(engine.set[cudnn.EngineGraph][0])]) {
		if e.String() == want.String() {
			return &e
		}
	}
	return nil
}
