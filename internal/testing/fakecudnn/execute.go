package fakecudnn

import (
	"slices"
	"unsafe"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// get reads an attribute of a node.
func (g *Graph) get(d cudnn.Node, name cudnn.Attribute, of cudnn.AttributeType, asked int64, got *int64,
	values unsafe.Pointer) cudnn.Status {
	x := g.nodes[d]
	if x == nil || !x.finalized {
		return g.fault("reading attribute %d of a descriptor that does not exist or is not finalized", name)
	}
	switch name {
	case cudnn.HeuristicResults:
		return g.fill(of, asked, got, values, cudnn.EngineConfigNode,
			g.recommended(g.nodes[cudnn.Node(x.set[cudnn.HeuristicGraph][0])], int32(x.set[cudnn.HeuristicMode][0])))
	case cudnn.ConfigEngine:
		return g.fill(of, asked, got, values, cudnn.EngineNode, []Engine{*x.engine})
	case cudnn.ConfigKnobs:
		return g.fillKnobs(of, asked, got, values, x.engine.Knobs)
	case cudnn.EngineIndex:
		return answer(g, of, cudnn.Int64Value, asked, got, values, []int64{x.engine.Index})
	case cudnn.EngineNumerical:
		return answer(g, of, cudnn.NumericalValue, asked, got, values, x.engine.Numerical)
	case cudnn.EngineBehaviour:
		return answer(g, of, cudnn.BehaviourValue, asked, got, values, x.engine.Behaviour)
	case cudnn.KnobType:
		return answer(g, of, cudnn.KnobValue, asked, got, values, []int32{int32(x.set[name][0])})
	case cudnn.KnobChoice:
		return answer(g, of, cudnn.Int64Value, asked, got, values, []int64{int64(x.set[name][0])})
	case cudnn.PlanWorkspace:
		return answer(g, of, cudnn.Int64Value, asked, got, values, []int64{g.engineOf(x).Memory})
	}
	return g.fault("attribute %d cannot be read", name)
}

func (g *Graph) recommended(graph *node, mode int32) []Engine {
	switch {
	case !g.isConvolution(graph):
		if g.OfferedFlow == nil || mode == cudnn.HeuristicFallback {
			return nil
		}
		return g.OfferedFlow(g.flow(graph))
	case mode == cudnn.HeuristicFallback:
		return g.Fallback(g.convolution(graph))
	}
	return g.Offered(g.convolution(graph))
}

// all returns all engines of a graph.
func (g *Graph) all(graph *node) []Engine {
	return append(g.recommended(graph, cudnn.HeuristicA), g.recommended(graph, cudnn.HeuristicFallback)...)
}

// isConvolution reports whether a graph is one convolution.
func (g *Graph) isConvolution(graph *node) bool {
	switch g.nodes[cudnn.Node(graph.set[cudnn.GraphOperations][0])].of {
	case cudnn.ForwardNode, cudnn.GradXNode, cudnn.GradWNode:
		return true
	}
	return false
}

// checkConvolution checks the layout of the operands.
func (g *Graph) checkConvolution(graph *node) cudnn.Status {
	op := g.nodes[cudnn.Node(graph.set[cudnn.GraphOperations][0])]
	for _, v := range op.set {
		t := g.nodes[cudnn.Node(v[0])]
		if t == nil || t.of != cudnn.TensorNode {
			continue
		}
		dims, strides := t.set[cudnn.TensorDimensions], t.set[cudnn.TensorStrides]
		c, h, w := dims[1], dims[2], dims[3]
		if !slices.Equal(strides, []uint64{h * w * c, 1, w * c, c}) {
			return g.fault("strides %v of dimensions %v are not NHWC", strides, dims)
		}
	}
	return 0
}

// engineOf returns the engine of a plan.
func (g *Graph) engineOf(plan *node) *Engine {
	return g.nodes[cudnn.Node(plan.set[cudnn.PlanConfig][0])].engine
}

// answer writes up to asked values.
func answer[T any](g *Graph, of, want cudnn.AttributeType, asked int64, got *int64, values unsafe.Pointer,
	all []T) cudnn.Status {
	if of != want || asked < 1 {
		return g.fault("reading %d values of type %d, want type %d", asked, of, want)
	}
	*got = int64(copy(unsafe.Slice((*T)(values), asked), all))
	return 0
}

// fill turns descriptors that the caller created into descriptors of engines.
func (g *Graph) fill(of cudnn.AttributeType, asked int64, got *int64, values unsafe.Pointer, node cudnn.DescriptorType,
	engines []Engine) cudnn.Status {
	to, s := g.given(of, asked, values, node)
	if s != 0 {
		return s
	}
	n := min(len(to), len(engines))
	for i := range n {
		g.nodes[to[i]].engine, g.nodes[to[i]].finalized = &engines[i], true
	}
	*got = int64(n)
	return 0
}

func (g *Graph) fillKnobs(of cudnn.AttributeType, asked int64, got *int64, values unsafe.Pointer,
	knobs []cudnn.Knob) cudnn.Status {
	to, s := g.given(of, asked, values, cudnn.KnobNode)
	if s != 0 {
		return s
	}
	n := min(len(to), len(knobs))
	for i := range n {
		x := g.nodes[to[i]]
		x.set[cudnn.KnobType], x.set[cudnn.KnobChoice] = []uint64{uint64(knobs[i].Type)}, []uint64{uint64(
			knobs[i].Value)}
		x.finalized = true
	}
	*got = int64(n)
	return 0
}

// given returns the descriptors to fill, which must be new.
func (g *Graph) given(of cudnn.AttributeType, asked int64, values unsafe.Pointer,
	node cudnn.DescriptorType) ([]cudnn.Node, cudnn.Status) {
	if of != cudnn.NodeValue || asked < 1 {
		return nil, g.fault("reading %d values of type %d, want descriptors", asked, of)
	}
	all := unsafe.Slice((*cudnn.Node)(values), asked)
	for _, d := range all {
		if x := g.nodes[d]; x == nil || x.of != node || x.finalized || len(x.set) > 0 {
			return nil, g.fault("descriptor %d to be filled is not a new one of type %d", d, node)
		}
	}
	return all, 0
}

// convolution returns the convolution that a graph describes.
func (g *Graph) convolution(graph *node) Convolution {
	op := g.nodes[cudnn.Node(graph.set[cudnn.GraphOperations][0])]
	names := map[cudnn.DescriptorType][4]cudnn.Attribute{
		cudnn.ForwardNode: {cudnn.ForwardX, cudnn.ForwardW, cudnn.ForwardY, cudnn.ForwardConv},
		cudnn.GradXNode:   {cudnn.GradXX, cudnn.GradXW, cudnn.GradXY, cudnn.GradXConv},
		cudnn.GradWNode:   {cudnn.GradWX, cudnn.GradWW, cudnn.GradWY, cudnn.GradWConv},
	}[op.of]
	of := func(i int) map[cudnn.Attribute][]uint64 { return g.nodes[cudnn.Node(op.set[names[i]][0])].set }
	dims := func(i int) (d [4]int64) {
		for j, v := range of(i)[cudnn.TensorDimensions] {
			d[j] = int64(v)
		}
		return d
	}
	c := Convolution{Type: cudnn.Type(of(0)[cudnn.TensorType][0]), X: dims(0), W: dims(1), Y: dims(2),
		Stride: int64(of(3)[cudnn.ConvolutionStride][0]), Pad: int64(of(3)[cudnn.ConvolutionPad][0])}
	c.Direction = map[cudnn.DescriptorType]cudnn.Direction{cudnn.ForwardNode: cudnn.Forward,
		cudnn.GradXNode: cudnn.GradX, cudnn.GradWNode: cudnn.GradW}[op.of]
	c.Alignment = int64(min(of(0)[cudnn.TensorAlignment][0], of(1)[cudnn.TensorAlignment][0],
		of(2)[cudnn.TensorAlignment][0]))
	for i := range 3 {
		if t := of(i)[cudnn.TensorType][0]; cudnn.Type(t) != c.Type {
			g.fault("operand %d has type %d, the first has type %d", i, t, c.Type)
		}
		if number := of(i)[cudnn.TensorUID][0]; number != uint64(i+1) {
			g.fault("operand %d has id %d", i, number)
		}
	}
	return c
}

func (g *Graph) execute(h cudnn.Ptr, plan, pack cudnn.Node) cudnn.Status {
	p, at := g.nodes[plan], g.nodes[pack]
	switch {
	case p == nil || at == nil || p.of != cudnn.PlanNode || at.of != cudnn.PackNode || !p.finalized || !at.finalized:
		return g.fault("executing a plan or pack that does not exist or is not finalized")
	case p.set[cudnn.PlanHandle][0] != uint64(h):
		return g.fault("executing a plan of handle %d with handle %d", p.set[cudnn.PlanHandle][0], h)
	}
	config := g.nodes[cudnn.Node(p.set[cudnn.PlanConfig][0])]
	graph := g.nodes[cudnn.Node(g.nodes[cudnn.Node(config.set[cudnn.ConfigEngine][0])].set[cudnn.EngineGraph][0])]
	e, workspace := config.engine, driver.Pointer(at.set[cudnn.PackWorkspace][0])
	if e.Memory > 0 && workspace == 0 {
		return g.fault("executing %v without its workspace", e.Engine)
	}
	if !g.isConvolution(graph) {
		return g.executeFlow(graph, at, *e, workspace)
	}
	c := g.convolution(graph)
	var where [3]driver.Pointer
	for i, number := range at.set[cudnn.PackUIDs] {
		if number < 1 || number > 3 {
			return g.fault("tensor %d does not exist", number)
		}
		where[number-1] = driver.Pointer(at.set[cudnn.PackAddresses][i])
	}
	for _, a := range where {
		if int64(a)%c.Alignment != 0 {
			return g.fault("an operand has address %#x, want a multiple of %d", a, c.Alignment)
		}
	}
	g.Executed++
	if e.Refuses != 0 {
		return e.Refuses
	}
	return g.Compute(c, *e, where[0], where[1], where[2], workspace)
}
