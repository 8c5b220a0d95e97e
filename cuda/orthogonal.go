package cuda

import (
	"cmp"
	"errors"
	"slices"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// batchedOrthogonalize is an Orthogonalize. Matrices of one shape are a batch, also across the vectors of
// agents.
type batchedOrthogonalize struct {
	executor.Op
	device *Device
	at     kernels.Address
	list   *listCopy[device.Orthogonal]
}

func (o *batchedOrthogonalize) BatchesWith(other executor.Batchable) bool {
	x, ok := other.(*batchedOrthogonalize)
	return ok && x.list == o.list
}

func (o *batchedOrthogonalize) LevelStride() int { return 1 }

func (o *batchedOrthogonalize) SendBatch(ex *executor.Executor, ops []*executor.Op) error {
	if err := ex.Collector.Flush(); err != nil {
		return err
	}
	var vectors []kernels.Address
	for _, p := range ops {
		vectors = append(vectors, p.Batch.(*batchedOrthogonalize).at)
	}
	return o.device.orthogonalize(o.list, vectors)
}

// sendOrthogonalize queues an Orthogonalize.
func (d *Device) sendOrthogonalize(op *device.Op) {
	matrices := slices.DeleteFunc(slices.Clone(op.Matrices), func(m device.Orthogonal) bool { return m.Len() == 0 })
	if len(matrices) == 0 {
		return
	}
	slices.SortStableFunc(matrices, func(a, b device.Orthogonal) int { return shapeOf(a).compare(shapeOf(b)) })
	list := d.orthogonal.lists.of(d.exec, matrices, kernels.OrthogonalList)
	if list == nil {
		return
	}
	made := &batchedOrthogonalize{device: d, at: d.operand(op.Out[0]).address(), list: list}
	made.Batch = made
	d.declare(&made.Op, op)
	d.exec.EnqueueOp(&made.Op)
}

// matrixShape is the sides of a matrix that is wider than high, or was transposed.
type matrixShape struct{ short, long int }

func shapeOf(m device.Orthogonal) matrixShape {
	return matrixShape{min(m.Rows, m.Cols), max(m.Rows, m.Cols)}
}

func (s matrixShape) compare(o matrixShape) int {
	return cmp.Or(cmp.Compare(s.short, o.short), cmp.Compare(s.long, o.long))
}

// FactorBits returns the bits to which products of an Orthogonalize round their factors.
func (d *Device) FactorBits() int {
	switch d.precision {
	case TF32:
		return 11
	case BF16:
		return 8
	}
	return 24
}

// orthogonalizer holds what orthogonalizations of a device share.
type orthogonalizer struct {
	lists    listCache[device.Orthogonal]
	products map[productsKey]*batchProducts // Only the executor uses it.
}

// productsKey is a number of matrices of a shape, beside others whose bits its results have to have.
type productsKey struct {
	matrixShape
	count, like int
}

// batchProducts is the three products of a step for a number of matrices.
type batchProducts struct {
	element kernels.Element
	by      [3]*cublas.Batched // By cuBLASLt; nil: cuBLAS multiplies one pair of matrices after the other.
}

// orthogonalBytes is the memory that the matrices of a batch take, or one matrix of each vector.
const orthogonalBytes = 128 << 20

// batchStride returns the numbers from one matrix of a batch to the next, of n numbers each.
func batchStride(n int) int { return (n + 63) / 64 * 64 }

// numbers returns the numbers of working memory for a matrix.
func (s matrixShape) numbers() int {
	return 2 * (batchStride(s.short*s.long) + batchStride(s.short*s.short))
}

// most returns how many matrices a batch has at most.
func (s matrixShape) most() int { return max(1, orthogonalBytes/(4*s.numbers())) }

// orthogonalize sends the orthogonalization of the matrices of vectors, whose shapes ascend. In the precisions tf32
// and bf16 its products round their factors, in bf16 also their results. In fp32 and fp16 they are in float32.
func (d *Device) orthogonalize(list *listCopy[device.Orthogonal], vectors []kernels.Address) error {
	for first := 0; first < len(list.items); {
		s, end := shapeOf(list.items[first]), first+1
		for end < len(list.items) && shapeOf(list.items[end]) == s {
			end++
		}
		for part := range slices.Chunk(vectors, min(kernels.MostEach, s.most())) {
			b := kernels.OrthogonalBatch{Vectors: part, Short: s.short, Long: s.long, Stride: batchStride(s.short * s.long)}
			each := max(1, s.most()/len(part))
			for at := first; at < end; at += each {
				b.Matrices = min(each, end-at)
				b.List = list.address() + kernels.Address(at*kernels.OrthogonalListBytes)
				if err := d.orthogonalizeBatch(b, s, min(end-first, s.most())); err != nil {
					return err
				}
			}
		}
		first = end
	}
	return nil
}

// orthogonalizeBatch sends the orthogonalization of a batch of matrices of a shape. Its results have the bits of a
// batch of `like` matrices.
func (d *Device) orthogonalizeBatch(b kernels.OrthogonalBatch, s matrixShape, like int) error {
	ex, count := d.exec, b.Matrices*len(b.Vectors)
	base, err := d.batchProducts(s, like, like)
	if err != nil {
		return err
	}
	b.Element = base.element
	square := batchStride(s.short * s.short)
	sums := 8 * count * b.SquareParts()
	block, err := ex.Alloc(sums + b.Element.Size()*count*s.numbers() + 4*compiler.AlignBytes)
	if err != nil {
		return err
	}
	defer ex.PutBlock(block)
	b.Parts = block.Address()
	after := func(at kernels.Address, bytes int) kernels.Address {
		return kernels.Address(compiler.Align(int(at) + bytes))
	}
	now := after(b.Parts, sums)
	next := after(now, b.Element.Size()*count*b.Stride)
	p := after(next, b.Element.Size()*count*b.Stride)
	q := after(p, b.Element.Size()*count*square)
	start := b.Start(now, device.OrthogonalMinNorm)
	if err := ex.Launch(start[:]...); err != nil {
		return err
	}
	run := batchRun{d, base, s, count, like}
	for range device.OrthogonalSteps {
		// P = X·Xᵀ, Q = C·P·P + B·P, X' = Q·X + A·X
		if err := errors.Join(run.multiply(0, p, now, now, p), run.multiply(1, q, p, p, p),
			run.multiply(2, next, q, now, now)); err != nil {
			return err
		}
		now, next = next, now
	}
	return ex.Launch(b.End(now))
}

// products returns the three products of a step for count matrices.
func (s matrixShape) products(element kernels.Element, compute cublas.Compute, count int) [3]cublas.Batch {
	of, long, square := blasTypes[element], batchStride(s.short*s.long), batchStride(s.short*s.short)
	product := func(n, k int, transposed bool, alpha, beta float64, strideA, strideB, strideD int) cublas.Batch {
		const aligned = compiler.AlignBytes // any address
		return cublas.Batch{Product: cublas.Product{M: s.short, N: n, K: k, TransB: transposed, A: aligned, B: aligned,
			C: aligned, Type: of, TypeC: of, Compute: compute}, Alpha: float32(alpha), Beta: float32(beta), Count: count,
			StrideA: strideA, StrideB: strideB, StrideD: strideD}
	}
	return [3]cublas.Batch{product(s.short, s.long, true, 1, 0, long, long, square),
		product(s.short, s.short, false, device.OrthogonalC, device.OrthogonalB, square, square, square),
		product(s.long, s.short, false, 1, device.OrthogonalA, square, long, long)}
}

// batchProducts returns the products of count matrices, whose results have the bits that they have in a batch of
// `like` matrices: their algorithms are chosen for that batch. The error is cublas.ErrUnsupported where one does not
// compute count matrices.
func (d *Device) batchProducts(s matrixShape, count, like int) (*batchProducts, error) {
	key := productsKey{s, count, like}
	if there := d.orthogonal.products[key]; there != nil {
		return there, nil
	}
	made := &batchProducts{}
	if d.precision == BF16 {
		made.element = kernels.BF16
	}
	var base *batchProducts
	if count != like {
		var err error
		if base, err = d.batchProducts(s, like, like); err != nil {
			return nil, err
		}
	}
	err := made.choose(d, s, count, base)
	if errors.Is(err, cublas.ErrUnsupported) && base == nil {
		err, made = nil, &batchProducts{}
	}
	if err != nil {
		return nil, err
	}
	if d.orthogonal.products == nil {
		d.orthogonal.products = map[productsKey]*batchProducts{}
	}
	d.orthogonal.products[key] = made
	return made, nil
}

// choose has cuBLASLt choose algorithms, or takes the ones of base, whose count is another. An algorithm that
// is chosen computes single matrices too.
func (b *batchProducts) choose(d *Device, s matrixShape, count int, base *batchProducts) error {
	if d.handles.lt == nil {
		return cublas.ErrUnsupported
	}
	for i, p := range s.products(b.element, d.compute(), count) {
		var like *cublas.Batched
		if base != nil {
			like = base.by[i]
		}
		made, err := d.handles.lt.NewBatched(p, like)
		if err != nil {
			return err
		}
		d.exec.Track(made)
		b.by[i] = made
		if base == nil && count != 1 {
			p.Count = 1
			alone, err := d.handles.lt.NewBatched(p, made)
			if err != nil {
				return err
			}
			d.exec.Track(alone)
		}
	}
	return nil
}

// batchRun is the products of a batch of matrices.
type batchRun struct {
	d           *Device
	base        *batchProducts // The products for `like` matrices.
	shape       matrixShape
	count, like int
}

// multiply sends product i of a step: to = alpha·a·b + beta·plus.
func (r batchRun) multiply(i int, to, a, b, plus kernels.Address) error {
	p := r.shape.products(r.base.element, r.d.compute(), r.count)[i]
	if r.base.by[i] == nil {
		return r.multiplyEach(p, to, a, b, plus)
	}
	size := r.base.element.Size()
	for done := 0; done < r.count; {
		n := r.count - done
		by, err := r.d.batchProducts(r.shape, n, r.like)
		for ; errors.Is(err, cublas.ErrUnsupported); by, err = r.d.batchProducts(r.shape, n, r.like) {
			n /= 2
		}
		if err != nil {
			return err
		}
		at := func(x kernels.Address, stride int) driver.Pointer {
			return driver.Pointer(x) + driver.Pointer(done*stride*size)
		}
		if err := by.by[i].Run(at(to, p.StrideD), at(a, p.StrideA), at(b, p.StrideB), at(plus, p.StrideD)); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// multiplyEach sends the products of a batch one after the other, in float32.
func (r batchRun) multiplyEach(p cublas.Batch, to, a, b, plus kernels.Address) error {
	one := p.Product
	for e := range r.count {
		at := func(x kernels.Address, stride int) driver.Pointer {
			return driver.Pointer(x) + driver.Pointer(4*e*stride)
		}
		one.A, one.B, one.C = at(a, p.StrideA), at(b, p.StrideB), at(to, p.StrideD)
		if err := r.d.handles.blas.Gemm(one); err != nil {
			return err
		}
	}
	if p.Beta == 0 {
		return nil
	}
	return r.d.exec.Launch(kernels.Combine(to, r.count*p.StrideD, kernels.Term{A: p.Alpha, V: to},
		kernels.Term{A: p.Beta, V: plus}))
}
