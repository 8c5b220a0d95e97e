package cublas

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"fspda/cuda/driver"
)

// Batch is products D = Alpha·A·B + Beta·C of Count triples of matrices, each of the shape of the
// Product, whose C is D here. C and D have one shape and one type.
type Batch struct {
	Product
	Alpha, Beta float32
	Count       int
	// Numbers from one matrix to the next of A, B, and C and D.
	StrideA, StrideB, StrideD int
}

// Batched is a Batch with a chosen algorithm, which splits no sum. Of addresses only the alignment
// matters.
type Batched struct {
	matmul      *Matmul
	alpha, beta *float32 // They lie on the heap, because the library reads them there.
}

// NewBatched chooses the algorithm that the library recommends. With another Batched of the same
// products and another count it takes its algorithm, so that all results have the bits that they
// have there. The error is ErrUnsupported where there is none.
func (l *Lt) NewBatched(b Batch, like *Batched) (*Batched, error) {
	m := &Matmul{lt: l, algo: new(Algo), epilogue: epilogueNone, operands: &Operands{},
		name: fmt.Sprintf("cublasLtMatmul of %d products of %d×%d×%d", b.Count, b.M, b.N, b.K)}
	made := &Batched{m, new(float32), new(float32)}
	*made.alpha, *made.beta = b.Alpha, b.Beta
	err := m.describe(b.Product)
	if err == nil {
		err = m.repeat(b)
	}
	switch {
	case err != nil:
	case like == nil:
		err = m.choose(b.Product, reduceNone)
	default:
		*m.algo = *like.matmul.algo
		err = m.check()
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return made, nil
}

// repeat tells the library how many matrices there are, and where.
func (m *Matmul) repeat(b Batch) (err error) {
	count := int32(b.Count)
	for _, l := range []struct {
		layout Ptr
		stride int
	}{{m.a, b.StrideB}, {m.b, b.StrideA}, {m.c, b.StrideD}} {
		stride, set := int64(l.stride), m.lt.api.SetLayout
		err = errors.Join(err, m.lt.api.check(set(l.layout, layoutBatch, unsafe.Pointer(&count), 4), m.name),
			m.lt.api.check(set(l.layout, layoutStride, unsafe.Pointer(&stride), 8), m.name))
	}
	return err
}

// check asks the library whether the algorithm of m computes its products, and how much memory it
// needs.
func (m *Matmul) check() error {
	var found Heuristic
	s := m.lt.api.CheckAlgo(m.lt.h, m.desc, m.a, m.b, m.c, m.c, m.algo, &found)
	if s != 0 || found.Status != 0 || int(found.Memory) > m.lt.workspaceBytes {
		return ErrUnsupported
	}
	m.memory = found.Memory
	return nil
}

// Run enqueues the products on the stream. All addresses must have the alignment that the algorithm
// was chosen for. C may be D.
func (b *Batched) Run(d, at, bt, c driver.Pointer) error {
	m, l := b.matmul, b.matmul.lt
	s := l.api.Matmul(l.h, m.desc, b.alpha, bt, m.a, at, m.b, b.beta, c, m.c, d, m.c, m.algo, l.workspace, m.memory,
		l.stream)
	runtime.KeepAlive(b)
	return l.api.check(s, m.name)
}

// Close destroys the library's descriptors of the products.
func (b *Batched) Close() error { return b.matmul.Close() }
