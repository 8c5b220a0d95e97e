package fakecudnn

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// FlowTensor is a tensor of a Flow.
type FlowTensor struct {
	UID           int64
	Type          cudnn.Type
	Dims, Strides [4]int
	Alignment     int
	Virtual       bool           // it exists within the graph only
	ByValue       bool           // Address is of one float32 of the host
	Address       driver.Pointer // 0 before it is executed
}

// Extent returns how many numbers of memory a tensor spans.
func (t *FlowTensor) Extent() int {
	n := 1
	for i, d := range t.Dims {
		n += (d - 1) * t.Strides[i]
	}
	return n
}

// size returns how many numbers a tensor has.
func (t *FlowTensor) size() int { return t.Dims[0] * t.Dims[1] * t.Dims[2] * t.Dims[3] }

// each calls do with the number of each element, and its place in memory.
func (t *FlowTensor) each(do func(i, at int)) {
	i := 0
	for a := range t.Dims[0] {
		for b := range t.Dims[1] {
			for c := range t.Dims[2] {
				for d := range t.Dims[3] {
					do(i, a*t.Strides[0]+b*t.Strides[1]+c*t.Strides[2]+d*t.Strides[3])
					i++
				}
			}
		}
	}
}

// Flow is a graph of several operations on tensors.
type Flow struct {
	Tensors map[int64]*FlowTensor
	ops     []flowOp
}

// flowOp computes out of in.
type flowOp struct {
	of, mode int32 // a cudnn.DescriptorType, and a mode
	axis     int
	in       []*FlowTensor
	out      *FlowTensor
}

// Has reports whether a graph has an operation on each number with a mode.
func (f *Flow) Has(mode int32) bool {
	for _, o := range f.ops {
		if o.of == int32(cudnn.PointwiseOpNode) && o.mode == mode {
			return true
		}
	}
	return false
}

// flow reads the operations of a graph.
func (g *Graph) flow(graph *node) *Flow {
	f := &Flow{Tensors: map[int64]*FlowTensor{}}
	for _, d := range graph.set[cudnn.GraphOperations] {
		x := g.nodes[cudnn.Node(d)]
		o := flowOp{of: int32(x.of)}
		names := map[cudnn.DescriptorType][]cudnn.Attribute{
			cudnn.PointwiseOpNode: {cudnn.PointwiseOpX, cudnn.PointwiseOpB, cudnn.PointwiseOpT, cudnn.PointwiseOpY},
			cudnn.MatmulOpNode:    {cudnn.MatmulOpA, cudnn.MatmulOpB, cudnn.MatmulOpC},
			cudnn.ReductionOpNode: {cudnn.ReductionOpX, cudnn.ReductionOpY},
			cudnn.ReshapeOpNode:   {cudnn.ReshapeOpX, cudnn.ReshapeOpY},
		}[x.of]
		for i, name := range names {
			v := x.set[name]
			switch {
			case v == nil:
			case i == len(names)-1:
				o.out = g.tensor(f, v[0])
			default:
				o.in = append(o.in, g.tensor(f, v[0]))
			}
		}
		if v := x.set[cudnn.PointwiseOpMode]; x.of == cudnn.PointwiseOpNode {
			mode := g.nodes[cudnn.Node(v[0])].set
			if o.mode = int32(mode[cudnn.PointwiseMode][0]); mode[cudnn.PointwiseAxis] != nil {
				o.axis = int(mode[cudnn.PointwiseAxis][0])
			}
		}
		if v := x.set[cudnn.ReductionOpOf]; x.of == cudnn.ReductionOpNode {
			o.mode = int32(g.nodes[cudnn.Node(v[0])].set[cudnn.ReductionMode][0])
		}
		f.ops = append(f.ops, o)
	}
	return f
}

// tensor returns the tensor of a descriptor.
func (g *Graph) tensor(f *Flow, d uint64) *FlowTensor {
	x := g.nodes[cudnn.Node(d)].set
	uid := int64(x[cudnn.TensorUID][0])
	if t := f.Tensors[uid]; t != nil {
		return t
	}
	t := &FlowTensor{UID: uid, Type: cudnn.Type(x[cudnn.TensorType][0]), Alignment: int(x[cudnn.TensorAlignment][0]),
		Virtual: x[cudnn.TensorVirtual] != nil, ByValue: x[cudnn.TensorByValue] != nil}
	for i := range t.Dims {
		t.Dims[i], t.Strides[i] = int(x[cudnn.TensorDimensions][i]), int(x[cudnn.TensorStrides][i])
	}
	f.Tensors[uid] = t
	return t
}

// executeFlow executes a plan of several operations.
func (g *Graph) executeFlow(graph, pack *node, by Engine, workspace driver.Pointer) cudnn.Status {
	f := g.flow(graph)
	for i, uid := range pack.set[cudnn.PackUIDs] {
		t := f.Tensors[int64(uid)]
		if t == nil || t.Virtual {
			return g.fault("tensor %d does not exist in memory", uid)
		}
		t.Address = driver.Pointer(pack.set[cudnn.PackAddresses][i])
		if int(t.Address)%t.Alignment != 0 {
			return g.fault("tensor %d has address %#x, want a multiple of %d", uid, t.Address, t.Alignment)
		}
	}
	for _, t := range f.Tensors {
		if !t.Virtual && t.Address == 0 {
			return g.fault("tensor %d has no address", t.UID)
		}
	}
	g.Executed++
	if by.Refuses != 0 {
		return by.Refuses
	}
	return g.ComputeFlow(f, by, workspace)
}

// Run computes all operations. memory returns the numbers that a tensor spans, and a function that
// writes them back. round rounds numbers to those of a type.
func (f *Flow) Run(memory func(t *FlowTensor) (v []float32, put func(), err error),
	round func(of cudnn.Type, v []float32)) error {
	values := map[*FlowTensor][]float32{}
	read := func(t *FlowTensor) ([]float32, error) {
		if v := values[t]; v != nil {
			return v, nil
		}
		if t.Virtual {
			return nil, fmt.Errorf("tensor %d is read before it is computed", t.UID)
		}
		if t.ByValue {
			return []float32{*(*float32)(*(*unsafe.Pointer)(unsafe.Pointer(&t.Address)))}, nil
		}
		m, _, err := memory(t)
		if err != nil {
			return nil, err
		}
		v := make([]float32, t.size())
		t.each(func(i, at int) { v[i] = m[at] })
		values[t] = v
		return v, nil
	}
	for _, o := range f.ops {
		in := make([][]float32, len(o.in))
		var err error
		for i, t := range o.in {
			v, failed := read(t)
			in[i], err = v, errors.Join(err, failed)
		}
		if err != nil {
			return err
		}
		v := make([]float32, o.out.size())
		if err := o.compute(v, in); err != nil {
			return err
		}
		round(o.out.Type, v)
		if values[o.out] = v; o.out.Virtual {
			continue
		}
		m, put, err := memory(o.out)
		if err != nil {
			return err
		}
		o.out.each(func(i, at int) { m[at] = v[i] })
		put()
	}
	return nil
}

// compute computes an operation. Operands are dense.
func (o *flowOp) compute(out []float32, in [][]float32) error {
	switch cudnn.DescriptorType(o.of) {
	case cudnn.MatmulOpNode:
		return o.multiply(out, in[0], in[1])
	case cudnn.ReductionOpNode:
		return o.reduce(out, in[0])
	case cudnn.ReshapeOpNode:
		return o.reshape(out, in[0])
	}
	return o.apply(out, in)
}

func (o *flowOp) multiply(out, a, b []float32) error {
	da, db, dc := o.in[0].Dims, o.in[1].Dims, o.out.Dims
	m, n, k := dc[2], dc[3], da[3]
	if da[2] != m || db[2] != k || db[3] != n || da[0] != dc[0] || db[0] != dc[0] || da[1] != dc[1] || db[1] != dc[1] {
		return fmt.Errorf("a product of %v and %v is not %v", da, db, dc)
	}
	for unit := range dc[0] * dc[1] {
		x, y, z := a[unit*m*k:], b[unit*k*n:], out[unit*m*n:]
		for i := range m {
			for j := range n {
				sum := 0.0
				for l := range k {
					sum += float64(x[i*k+l]) * float64(y[l*n+j])
				}
				z[i*n+j] = float32(sum)
			}
		}
	}
	return nil
}

func (o *flowOp) reduce(out, x []float32) error {
	d := o.in[0].Dims
	if o.out.Dims != [4]int{d[0], d[1], d[2], 1} {
		return fmt.Errorf("a reduction of %v is not %v", d, o.out.Dims)
	}
	for i := range out {
		row := x[i*d[3]:][:d[3]]
		sum, most := 0.0, math.Inf(-1)
		for _, v := range row {
			sum, most = sum+float64(v), max(most, float64(v))
		}
		if out[i] = float32(sum); o.mode == cudnn.ReductionMax {
			out[i] = float32(most)
		}
	}
	return nil
}

// reshape is a view with exchanged dimensions: the strides of both tensors say which.
func (o *flowOp) reshape(out, x []float32) error {
	if o.out.Extent() != o.in[0].Extent() {
		return fmt.Errorf("a reshape of %v by %v is not %v by %v", o.in[0].Dims, o.in[0].Strides, o.out.Dims,
			o.out.Strides)
	}
	m := make([]float32, o.out.Extent())
	o.in[0].each(func(i, at int) { m[at] = x[i] })
	o.out.each(func(i, at int) { out[i] = m[at] })
	return nil
}

// apply computes an operation on each number. An operand that has one number in a dimension repeats
// it.
func (o *flowOp) apply(out []float32, in [][]float32) error {
	d := o.out.Dims
	at := func(k int, index [4]int) float64 {
		t, place := o.in[k], 0
		for i, n := range t.Dims {
			if n == 1 {
				index[i] = 0
			}
			place = place*n + index[i]
		}
		return float64(in[k][place])
	}
	for k, t := range o.in {
		for i, n := range t.Dims {
			if n != 1 && n != d[i] {
				return fmt.Errorf("operand %d of mode %d has dimensions %v, the result %v", k, o.mode, t.Dims, d)
			}
		}
	}
	for i := range out {
		index := [4]int{i / (d[1] * d[2] * d[3]), i / (d[2] * d[3]) % d[1], i / d[3] % d[2], i % d[3]}
		if o.mode == cudnn.PointwiseIndex {
			out[i] = float32(index[o.axis])
			continue
		}
		x, b := at(0, index), 0.0
		if len(in) > 1 {
			b = at(1, index)
		}
		switch o.mode {
		case cudnn.PointwiseAdd:
			x += b
		case cudnn.PointwiseMultiply:
			x *= b
		case cudnn.PointwiseDivide:
			x /= b
		case cudnn.PointwiseSubtract:
			x -= b
		case cudnn.PointwiseExp:
			x = math.Exp(x)
		case cudnn.PointwiseLog:
			x = math.Log(x)
		case cudnn.PointwiseIdentity:
		case cudnn.PointwiseGreaterEqual:
			if x >= b {
				x = 1
			} else {
				x = 0
			}
		case cudnn.PointwiseSelect:
			if at(2, index) == 0 {
				x = b
			}
		default:
			return fmt.Errorf("mode %d does not exist", o.mode)
		}
		out[i] = float32(x)
	}
	return nil
}
