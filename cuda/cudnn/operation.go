package cudnn

// Numbers of the tensors of a graph, by which a plan is told where they lie.
const (
	numberX int64 = 1
	numberW int64 = 2
	numberY int64 = 3
)

// operation is where the properties of the node of a direction begin.
var operations = map[Direction]struct {
	node                       DescriptorType
	alpha, beta, conv, w, x, y Attribute
}{
	Forward: {ForwardNode, ForwardAlpha, ForwardBeta, ForwardConv, ForwardW, ForwardX, ForwardY},
	GradX:   {GradXNode, GradXAlpha, GradXBeta, GradXConv, GradXW, GradXX, GradXY},
	GradW:   {GradWNode, GradWAlpha, GradWBeta, GradWConv, GradWW, GradWX, GradWY},
}

// graphOf is a convolution, or one of its gradients, as a graph of one operation. Sums are float32.
// Operands lie at multiples of aligned bytes.
func (n *nodes) graphOf(s Shape, d Direction, of Type, aligned int, on place) Node {
	x := n.tensor(numberX, of, aligned, s.N, s.C, s.H, s.W)
	w := n.tensor(numberW, of, aligned, s.K, s.C, s.R, s.S)
	y := n.tensor(numberY, of, aligned, s.N, s.K, s.P(), s.Q())
	as := operations[d]
	op := n.create(as.node)
	set(n, op, as.conv, NodeValue, n.window(s))
	set(n, op, as.alpha, FloatValue, float32(1))
	set(n, op, as.beta, FloatValue, float32(0))
	set(n, op, as.x, NodeValue, x)
	set(n, op, as.w, NodeValue, w)
	set(n, op, as.y, NodeValue, y)
	n.finalize(op)
	g := n.create(GraphNode)
	set(n, g, GraphOperations, NodeValue, op)
	if on.handle != 0 {
		set(n, g, GraphHandle, HandleValue, on.handle)
	}
	return n.finalize(g)
}

// tensor is one whose dimensions are told as the library counts them, n, c, h, w, and lie in the
// order n, h, w, c.
func (n *nodes) tensor(number int64, of Type, aligned, images, channels, height, width int) Node {
	t := n.create(TensorNode)
	i := func(v int) int64 { return int64(v) }
	set(n, t, TensorNumber, Int64Value, number)
	set(n, t, TensorType, TypeValue, of)
	set(n, t, TensorAlignment, Int64Value, i(aligned))
	set(n, t, TensorDimensions, Int64Value, i(images), i(channels), i(height), i(width))
	set(n, t, TensorStrides, Int64Value, i(height)*i(width)*i(channels), 1, i(width)*i(channels), i(channels))
	return n.finalize(t)
}

// window is how filters go over images.
func (n *nodes) window(s Shape) Node {
	c, stride, pad := n.create(ConvolutionNode), int64(s.Stride), int64(s.Pad)
	set(n, c, ConvolutionCompute, TypeValue, Float32)
	set(n, c, ConvolutionMode, ModeValue, int32(crossCorrelation))
	set(n, c, ConvolutionSpatial, Int64Value, int64(2))
	set(n, c, ConvolutionDilation, Int64Value, int64(1), 1)
	set(n, c, ConvolutionStride, Int64Value, stride, stride)
	set(n, c, ConvolutionPad, Int64Value, pad, pad)
	set(n, c, ConvolutionPadAfter, Int64Value, pad, pad)
	return n.finalize(c)
}

// place is what plans are made for: the GPU of a handle, or one that only its properties tell of.
type place struct {
	handle Raw
	device Node
}

func (h *Handle) place() place { return place{h.h, h.device} }

// on sets what tells a node of the GPU, where it is asked for.
func (p place) on(n *nodes, d Node, device Attribute) {
	if p.device != 0 {
		set(n, d, device, NodeValue, p.device)
	}
}
