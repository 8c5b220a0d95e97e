package cudnn

// tensor is a tensor of a graph of several operations, with four dimensions.
type tensor struct {
	node          Node
	dims, strides [4]int64
}

// dataflow builds a graph of several operations. Sums and intermediate numbers are float32. Unique
// ids are 1, 2 and so on: of the operands in device memory, then of the scalars, then of tensors
// that exist within the graph only.
type dataflow struct {
	*nodes
	alignment  int // divides the addresses of operands
	last       int64
	operands   int
	scalars    []*float32
	operations []Node
}

// describe creates a tensor with an attribute, or none.
func (f *dataflow) describe(of Type, alignment int, dims, strides [4]int64, attribute Attribute) tensor {
	f.last++
	t := f.create(TensorNode)
	set(f.nodes, t, TensorUID, Int64Value, f.last)
	set(f.nodes, t, TensorType, TypeValue, of)
	set(f.nodes, t, TensorAlignment, Int64Value, int64(alignment))
	set(f.nodes, t, TensorDimensions, Int64Value, dims[:]...)
	set(f.nodes, t, TensorStrides, Int64Value, strides[:]...)
	if attribute != 0 {
		set(f.nodes, t, attribute, BoolValue, true)
	}
	return tensor{f.finalize(t), dims, strides}
}

// operand adds a tensor in device memory. All come before scalars.
func (f *dataflow) operand(of Type, dims, strides [4]int64) tensor {
	f.operands++
	return f.describe(of, f.alignment, dims, strides, 0)
}

// scalar adds a number that the library reads from the host. All come before other tensors of the
// graph.
func (f *dataflow) scalar(v float32) tensor {
	f.scalars = append(f.scalars, &v)
	ones := [4]int64{1, 1, 1, 1}
	return f.describe(Float32, 4, ones, ones, TensorByValue)
}

// within adds a tensor that exists within the graph only.
func (f *dataflow) within(of Type, dims, strides [4]int64) tensor {
	return f.describe(of, fullAlignment, dims, strides, TensorVirtual)
}

// rows returns the strides of a tensor that is stored without gaps.
func rows(dims [4]int64) [4]int64 {
	return [4]int64{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}
}

// swap exchanges the last two dimensions.
func swap(v [4]int64) [4]int64 { return [4]int64{v[0], v[1], v[3], v[2]} }

// each applies an operation to each number of x, and of b and a condition unless they are nil. What
// has one number in a dimension is repeated.
func (f *dataflow) each(mode int32, compute Type, y, x tensor, more ...tensor) tensor {
	of := f.create(PointwiseNode)
	set(f.nodes, of, PointwiseMode, PointwiseValue, mode)
	set(f.nodes, of, PointwiseCompute, TypeValue, compute)
	return f.eachOf(f.finalize(of), y, x, more...)
}

func (f *dataflow) eachOf(of Node, y, x tensor, more ...tensor) tensor {
	op := f.create(PointwiseOpNode)
	set(f.nodes, op, PointwiseOpMode, NodeValue, of)
	set(f.nodes, op, PointwiseOpX, NodeValue, x.node)
	for i, t := range more {
		set(f.nodes, op, []Attribute{PointwiseOpB, PointwiseOpT}[i], NodeValue, t.node)
	}
	set(f.nodes, op, PointwiseOpY, NodeValue, y.node)
	f.operations = append(f.operations, f.finalize(op))
	return y
}

// float applies an operation to float32 numbers, with a result like x.
func (f *dataflow) float(mode int32, x tensor, more ...tensor) tensor {
	return f.each(mode, Float32, f.within(Float32, x.dims, x.strides), x, more...)
}

// index is the index of each number of x in a dimension.
func (f *dataflow) index(x tensor, dimension int64) tensor {
	of := f.create(PointwiseNode)
	set(f.nodes, of, PointwiseMode, PointwiseValue, PointwiseIndex)
	set(f.nodes, of, PointwiseCompute, TypeValue, Float32)
	set(f.nodes, of, PointwiseAxis, Int64Value, dimension)
	return f.eachOf(f.finalize(of), f.within(Int32, x.dims, x.strides), x)
}

// product computes y = a·b, of matrices in the last two dimensions.
func (f *dataflow) product(y, a, b tensor) tensor {
	of := f.create(MatmulNode)
	set(f.nodes, of, MatmulCompute, TypeValue, Float32)
	f.finalize(of)
	op := f.create(MatmulOpNode)
	set(f.nodes, op, MatmulOpA, NodeValue, a.node)
	set(f.nodes, op, MatmulOpB, NodeValue, b.node)
	set(f.nodes, op, MatmulOpC, NodeValue, y.node)
	set(f.nodes, op, MatmulOpOf, NodeValue, of)
	f.operations = append(f.operations, f.finalize(op))
	return y
}

// reduce reduces the last dimension of x to one number.
func (f *dataflow) reduce(mode int32, x tensor) tensor {
	of := f.create(ReductionNode)
	set(f.nodes, of, ReductionMode, ReductionValue, mode)
	set(f.nodes, of, ReductionCompute, TypeValue, Float32)
	f.finalize(of)
	dims := [4]int64{x.dims[0], x.dims[1], x.dims[2], 1}
	y := f.within(Float32, dims, rows(dims))
	op := f.create(ReductionOpNode)
	set(f.nodes, op, ReductionOpOf, NodeValue, of)
	set(f.nodes, op, ReductionOpX, NodeValue, x.node)
	set(f.nodes, op, ReductionOpY, NodeValue, y.node)
	f.operations = append(f.operations, f.finalize(op))
	return y
}

// transpose is x, as a tensor of a type, with the last two dimensions exchanged.
func (f *dataflow) transpose(of Type, x tensor) tensor {
	y := f.within(of, swap(x.dims), swap(x.strides))
	op := f.create(ReshapeOpNode)
	set(f.nodes, op, ReshapeOpX, NodeValue, x.node)
	set(f.nodes, op, ReshapeOpY, NodeValue, y.node)
	f.operations = append(f.operations, f.finalize(op))
	return y
}

// graph makes the graph of all operations.
func (f *dataflow) graph(on target) Node {
	g := f.create(GraphNode)
	set(f.nodes, g, GraphOperations, NodeValue, f.operations...)
	if on.handle != 0 {
		set(f.nodes, g, GraphHandle, HandleValue, on.handle)
	}
	return f.finalize(g)
}
