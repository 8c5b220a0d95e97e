package fakecudnn

import (
	"unsafe"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// get answers what may be asked of a node.
func (g *Graph) get(d cudnn.Node, name cudnn.Attribute, of cudnn.AttributeType, asked int64, got *int64,
	values unsafe.Pointer) cudnn.Status {
	x := g.nodes[d]
	if x == nil || !x.complete {
		return g.wrong("attribute %d is asked of a descriptor that is none or not complete", name)
	}
	switch name {
	case cudnn.HeuristicResults:
		c := g.convolution(g.nodes[cudnn.Node(x.set[cudnn.HeuristicGraph][0])])
		return g.fill(of, asked, got, values, cudnn.EngineConfigNode,
			g.advised(c, int32(x.set[cudnn.HeuristicMode][0])))
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
	return g.wrong("attribute %d is asked for", name)
}

func (g *Graph) advised(c Convolution, mode int32) []Engine {
	if mode == cudnn.HeuristicFallback {
		return g.Fallback(c)
	}
	return g.Offered(c)
}

// engineOf is that of a plan.
func (g *Graph) engineOf(plan *node) *Engine {
	return g.nodes[cudnn.Node(plan.set[cudnn.PlanConfig][0])].engine
}

// answer writes values, as many as are asked for.
func answer[T any](g *Graph, of, is cudnn.AttributeType, asked int64, got *int64, values unsafe.Pointer,
	all []T) cudnn.Status {
	if of != is || asked < 1 {
		return g.wrong("%d values of type %d are asked for, expected type %d", asked, of, is)
	}
	*got = int64(copy(unsafe.Slice((*T)(values), asked), all))
	return 0
}

// fill makes the descriptors that the caller has made into those of engines.
func (g *Graph) fill(of cudnn.AttributeType, asked int64, got *int64, values unsafe.Pointer, node cudnn.DescriptorType,
	engines []Engine) cudnn.Status {
	to, s := g.given(of, asked, values, node)
	if s != 0 {
		return s
	}
	n := min(len(to), len(engines))
	for i := range n {
		g.nodes[to[i]].engine, g.nodes[to[i]].complete = &engines[i], true
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
		x.complete = true
	}
	*got = int64(n)
	return 0
}

// given are descriptors to be filled, which must be new.
func (g *Graph) given(of cudnn.AttributeType, asked int64, values unsafe.Pointer,
	node cudnn.DescriptorType) ([]cudnn.Node, cudnn.Status) {
	if of != cudnn.NodeValue || asked < 1 {
		return nil, g.wrong("%d values of type %d are asked for, expected descriptors", asked, of)
	}
	all := unsafe.Slice((*cudnn.Node)(values), asked)
	for _, d := range all {
		if x := g.nodes[d]; x == nil || x.of != node || x.complete || len(x.set) > 0 {
			return nil, g.wrong("descriptor %d is to be filled, and is not a new one of type %d", d, node)
		}
	}
	return all, 0
}

// convolution is what a graph is of.
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
	c.Aligned = int64(min(of(0)[cudnn.TensorAlignment][0], of(1)[cudnn.TensorAlignment][0],
		of(2)[cudnn.TensorAlignment][0]))
	for i := range 3 {
		if t := of(i)[cudnn.TensorType][0]; cudnn.Type(t) != c.Type {
			g.wrong("operand %d is of type %d, and the first of type %d", i, t, c.Type)
		}
		if number := of(i)[cudnn.TensorNumber][0]; number != uint64(i+1) {
			g.wrong("operand %d has number %d", i, number)
		}
	}
	return c
}

func (g *Graph) execute(h cudnn.Raw, plan, pack cudnn.Node) cudnn.Status {
	p, at := g.nodes[plan], g.nodes[pack]
	switch {
	case p == nil || at == nil || p.of != cudnn.PlanNode || at.of != cudnn.PackNode || !p.complete || !at.complete:
		return g.wrong("a plan is executed that is none, or with addresses that are none")
	case p.set[cudnn.PlanHandle][0] != uint64(h):
		return g.wrong("a plan of handle %d is executed with handle %d", p.set[cudnn.PlanHandle][0], h)
	}
	config := g.nodes[cudnn.Node(p.set[cudnn.PlanConfig][0])]
	graph := g.nodes[cudnn.Node(g.nodes[cudnn.Node(config.set[cudnn.ConfigEngine][0])].set[cudnn.EngineGraph][0])]
	c, e := g.convolution(graph), config.engine
	var where [3]driver.Pointer
	for i, number := range at.set[cudnn.PackNumbers] {
		if number < 1 || number > 3 {
			return g.wrong("there is no tensor %d", number)
		}
		where[number-1] = driver.Pointer(at.set[cudnn.PackAddresses][i])
	}
	workspace := driver.Pointer(at.set[cudnn.PackWorkspace][0])
	for _, a := range where {
		if int64(a)%c.Aligned != 0 {
			return g.wrong("an operand lies at %#x, expected a multiple of %d", a, c.Aligned)
		}
	}
	if e.Memory > 0 && workspace == 0 {
		return g.wrong("%v is executed without its workspace", e.Engine)
	}
	g.Executed++
	if e.Refuses != 0 {
		return e.Refuses
	}
	return g.Compute(c, *e, where[0], where[1], where[2], workspace)
}
