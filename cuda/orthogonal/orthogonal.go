package orthogonal

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

// Shape is the sides of a matrix that is wider than high, or was transposed.
type Shape struct{ short, long int }

// ShapeOf returns the shape of a matrix.
func ShapeOf(m device.Orthogonal) Shape {
	return Shape{min(m.Rows, m.Cols), max(m.Rows, m.Cols)}
}

func (s Shape) Compare(o Shape) int {
	return cmp.Or(cmp.Compare(s.short, o.short), cmp.Compare(s.long, o.long))
}

// Orthogonalizer sends orthogonalizations to the stream of an executor, which uses it.
type Orthogonalizer struct {
	Ex       *executor.Executor
	BLAS     *cublas.Handle
	LT       *cublas.Lt      // nil: BLAS multiplies all matrices, one pair after the other.
	Compute  cublas.Compute  // The precision of products of float32 numbers.
	Element  kernels.Element // The numbers of products of LT.
	products map[productsKey]*batchProducts
}

// productsKey is a number of matrices of a shape, beside others whose bits its results have to
// have.
type productsKey struct {
	Shape
	count, like int
}

// batchProducts is the three products of a step for a number of matrices.
type batchProducts struct {
	element kernels.Element
	none    bool               // An algorithm does not compute this number of matrices.
	exact   bool               // An algorithm does not compute single matrices: perhaps this number only.
	by      [3]*cublas.Batched // By cuBLASLt; nil: cuBLAS multiplies one pair of matrices after the other.
}

// BatchBytes is the memory that the matrices of a batch take, or one matrix of each vector.
const BatchBytes = 128 << 20

// batchStride returns the numbers from one matrix of a batch to the next, of n numbers each.
func batchStride(n int) int { return (n + 63) / 64 * 64 }

// numbers returns the numbers of working memory for a matrix.
func (s Shape) numbers() int {
	return 2 * (batchStride(s.short*s.long) + batchStride(s.short*s.short))
}

// most returns how many matrices a batch has at most.
func (s Shape) most() int { return max(1, BatchBytes/(4*s.numbers())) }

// Send sends the orthogonalization of the matrices of vectors, whose shapes ascend. list has them
// in device memory.
func (o *Orthogonalizer) Send(matrices []device.Orthogonal, list kernels.Address, vectors []kernels.Address) error {
	for first := 0; first < len(matrices); {
		s, end := ShapeOf(matrices[first]), first+1
		for end < len(matrices) && ShapeOf(matrices[end]) == s {
			end++
		}
		// The algorithms are chosen for a number of matrices that divides the number of a vector.
		like := min(end-first, s.most())
		for (end-first)%like != 0 {
			like--
		}
		base, err := o.batchProducts(s, like, like)
		if err != nil {
			return err
		}
		together := min(kernels.MostEach, s.most())
		if base.exact {
			together = 1
		}
		for part := range slices.Chunk(vectors, together) {
			b := kernels.OrthogonalBatch{Element: base.element, Vectors: part, Short: s.short, Long: s.long,
				Stride: batchStride(s.short * s.long)}
			each := max(1, s.most()/len(part))
			if base.exact {
				each = like
			}
			for at := first; at < end; at += each {
				b.Matrices = min(each, end-at)
				b.List = list + kernels.Address(at*kernels.OrthogonalListBytes)
				if err := o.sendBatch(b, s, base, like); err != nil {
					return err
				}
			}
		}
		first = end
	}
	return nil
}

// sendBatch sends the orthogonalization of a batch of matrices of a shape. Its results have the
// bits of a batch of `like` matrices, whose products are base.
func (o *Orthogonalizer) sendBatch(b kernels.OrthogonalBatch, s Shape, base *batchProducts, like int) error {
	ex, count := o.Ex, b.Matrices*len(b.Vectors)
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
	run := batchRun{o, base, s, count, like}
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
func (s Shape) products(element kernels.Element, compute cublas.Compute, count int) [3]cublas.Batch {
	of, long, square := cublas.Float32, batchStride(s.short*s.long), batchStride(s.short*s.short)
	if element == kernels.BF16 {
		of = cublas.BFloat16
	}
	product := func(n, k int, transposed bool, alpha, beta float64, strideA, strideB, strideD int) cublas.Batch {
		const aligned = compiler.AlignBytes // any address
		return cublas.Batch{Product: cublas.Product{M: s.short, N: n, K: k, TransB: transposed, A: aligned, B: aligned,
			C: aligned, Type: of, TypeC: of, Compute: compute}, Alpha: float32(alpha), Beta: float32(beta),
			Count: count, StrideA: strideA, StrideB: strideB, StrideD: strideD}
	}
	return [3]cublas.Batch{product(s.short, s.long, true, 1, 0, long, long, square),
		product(s.short, s.short, false, device.OrthogonalC, device.OrthogonalB, square, square, square),
		product(s.long, s.short, false, 1, device.OrthogonalA, square, long, long)}
}

// batchProducts returns the products of count matrices, whose results have the bits that they have
// in a batch of `like` matrices: their algorithms are chosen for that batch. The error is
// cublas.ErrUnsupported where one does not compute count matrices.
func (o *Orthogonalizer) batchProducts(s Shape, count, like int) (*batchProducts, error) {
	key := productsKey{s, count, like}
	if there := o.products[key]; there != nil {
		if there.none {
			return nil, cublas.ErrUnsupported
		}
		return there, nil
	}
	made := &batchProducts{element: o.Element}
	var base *batchProducts
	if count != like {
		var err error
		if base, err = o.batchProducts(s, like, like); err != nil {
			return nil, err
		}
	}
	err := made.choose(o, s, count, base)
	if errors.Is(err, cublas.ErrUnsupported) {
		err, made = nil, &batchProducts{none: base != nil}
	}
	if err != nil {
		return nil, err
	}
	if o.products == nil {
		o.products = map[productsKey]*batchProducts{}
	}
	o.products[key] = made
	if made.none {
		return nil, cublas.ErrUnsupported
	}
	return made, nil
}

// choose has cuBLASLt choose algorithms, or takes the ones of base, whose count is another.
func (b *batchProducts) choose(o *Orthogonalizer, s Shape, count int, base *batchProducts) error {
	if o.LT == nil {
		return cublas.ErrUnsupported
	}
	for i, p := range s.products(b.element, o.Compute, count) {
		var like *cublas.Batched
		if base != nil {
			like = base.by[i]
		}
		made, err := o.LT.NewBatched(p, like)
		if err != nil {
			return err
		}
		o.Ex.Track(made)
		b.by[i] = made
		if base == nil && count != 1 {
			p.Count = 1
			switch alone, err := o.LT.NewBatched(p, made); {
			case errors.Is(err, cublas.ErrUnsupported):
				b.exact = true
			case err != nil:
				return err
			default:
				o.Ex.Track(alone)
			}
		}
	}
	return nil
}

// batchRun is the products of a batch of matrices.
type batchRun struct {
	o           *Orthogonalizer
	base        *batchProducts // The products for `like` matrices.
	shape       Shape
	count, like int
}

// multiply sends product i of a step: to = alpha·a·b + beta·plus.
func (r batchRun) multiply(i int, to, a, b, plus kernels.Address) error {
	p := r.shape.products(r.base.element, r.o.Compute, r.count)[i]
	if r.base.by[i] == nil {
		return r.multiplyEach(p, to, a, b, plus)
	}
	size := r.base.element.Size()
	for done := 0; done < r.count; {
		n := r.count - done
		by, err := r.o.batchProducts(r.shape, n, r.like)
		for ; errors.Is(err, cublas.ErrUnsupported); by, err = r.o.batchProducts(r.shape, n, r.like) {
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
		if err := r.o.BLAS.Gemm(one); err != nil {
			return err
		}
	}
	if p.Beta == 0 {
		return nil
	}
	return r.o.Ex.Launch(kernels.Combine(to, r.count*p.StrideD, kernels.Term{A: p.Alpha, V: to},
		kernels.Term{A: p.Beta, V: plus}))
}
