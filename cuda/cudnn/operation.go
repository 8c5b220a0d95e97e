package cudnn

// Unique ids of the tensors in a graph. A pack gives their addresses by id.
const (
	uidX int64 = 1
	uidW int64 = 2
	uidY int64 = 3
)

// operations lists the node type and attributes of each direction.
var operations = map[Direction]struct {
	node                       DescriptorType
	alpha, beta, conv, w, x, y Attribute
}{
	Forward: {ForwardNode, ForwardAlpha, ForwardBeta, ForwardConv, ForwardW, ForwardX, ForwardY},
	GradX:   {GradXNode, GradXAlpha, GradXBeta, GradXConv, GradXW, GradXX, GradXY},
	GradW:   {GradWNode, GradWAlpha, GradWBeta, GradWConv, GradWW, GradWX, GradWY},
}

// graphOf creates a graph of one operation: a convolution or one of its gradients. Sums are
// float32. alignment divides the addresses of the operands, in bytes.
func (n *nodes) graphOf(s Shape, d Direction, of Type, alignment int, on target) Node {
	x := n.tensor(uidX, of, alignment, s.N, s.C, s.H, s.W)
	w := n.tensor(uidW, of, alignment, s.K, s.C, s.R, s.S)
	y := n.tensor(uidY, of, alignment, s.N, s.K, s.P(), s.Q())
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

// tensor creates a tensor node. Dimensions are passed in the library's order, n, c, h, w; the
// tensor is stored as n, h, w, c.
func (n *nodes) tensor(uid int64, of Type, alignment, images, channels, height, width int) Node {
	t := n.create(TensorNode)
	i := func(v int) int64 { return int64(v) }
	set(n, t, TensorUID, Int64Value, uid)
	set(n, t, TensorType, TypeValue, of)
	set(n, t, TensorAlignment, Int64Value, i(alignment))
	set(n, t, TensorDimensions, Int64Value, i(images), i(channels), i(height), i(width))
	set(n, t, TensorStrides, Int64Value, i(height)*i(width)*i(channels), 1, i(width)*i(channels), i(channels))
	return n.finalize(t)
}

// window creates the convolution node: stride and padding.
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

// target is the GPU that plans are made for: the GPU of a handle, or one described by its
// properties only.
type target struct {
	handle Ptr
	device Node
}

func (h *Handle) target() target { return target{h.h, h.device} }

// set sets the GPU attribute of a node if the GPU is described by properties.
func (p target) set(n *nodes, d Node, device Attribute) {
	if p.device != 0 {
		set(n, d, device, NodeValue, p.device)
	}
}
