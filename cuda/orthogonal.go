package cuda

import (
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// sendOrthogonalize queues an Orthogonalize. Its products are cuBLAS's, in float32 as all work on
// vectors, whatever the precision of networks is.
func (d *Device) sendOrthogonalize(op *device.Op) {
	at, matrices := d.operand(op.Out[0]).address(), op.Matrices
	made := &executor.Op{Send: func() error {
		for _, m := range matrices {
			if m.Len() == 0 {
				continue
			}
			if err := d.orthogonalize(at+4*kernels.Address(m.Offset), m); err != nil {
				return err
			}
		}
		return nil
	}}
	d.declare(made, op)
	d.exec.EnqueueOp(made)
}

// orthogonalize sends the orthogonalization of the matrix at x.
func (d *Device) orthogonalize(x kernels.Address, m device.Orthogonal) error {
	ex, n, side := d.exec, m.Len(), min(m.Rows, m.Cols)
	sums := 8 * (1 + kernels.DotParts(n))
	block, err := ex.Alloc(sums + 4*m.Scratch())
	if err != nil {
		return err
	}
	defer ex.PutBlock(block)
	square := block.Address()
	now := square + kernels.Address(sums)
	next := now + 4*kernels.Address(n)
	p := next + 4*kernels.Address(n)
	q := p + 4*kernels.Address(side*side)
	left := m.Rows <= m.Cols // the small products stand left of X
	product := func(c, a, b kernels.Address, rows, cols, inner int, transA, transB bool) error {
		return d.handles.blas.Gemm(cublas.Product{M: rows, N: cols, K: inner, TransA: transA, TransB: transB,
			A: driver.Pointer(a), B: driver.Pointer(b), C: driver.Pointer(c), Type: cublas.Float32,
			TypeC: cublas.Float32, Compute: cublas.ComputeFloat32})
	}
	sum := kernels.Dot(square, 0, x, x, square+8, n, 1)
	if err := ex.Launch(sum[0], sum[1], kernels.Unit(now, x, square, device.OrthogonalMinNorm, n)); err != nil {
		return err
	}
	for range device.OrthogonalSteps {
		if err := product(p, now, now, side, side, max(m.Rows, m.Cols), !left, left); err != nil {
			return err
		}
		if err := product(q, p, p, side, side, side, false, false); err != nil {
			return err
		}
		if err := ex.Launch(kernels.Combine(q, side*side, kernels.Term{A: device.OrthogonalB, V: p},
			kernels.Term{A: device.OrthogonalC, V: q})); err != nil {
			return err
		}
		a, b := q, now
		if !left {
			a, b = now, q
		}
		if err := product(next, a, b, m.Rows, m.Cols, side, false, false); err != nil {
			return err
		}
		if err := ex.Launch(kernels.Combine(now, n, kernels.Term{A: device.OrthogonalA, V: now},
			kernels.Term{A: 1, V: next})); err != nil {
			return err
		}
	}
	return ex.Launch(kernels.Combine(x, n, kernels.Term{A: float32(m.Scale), V: now}))
}

// sendWithin queues a Combine or an AdamW that is limited to ranges.
func (d *Device) sendWithin(op *device.Op) {
	ex := d.exec
	made := &executor.Op{}
	var sends []func() error
	for _, r := range op.Only {
		if r.From < r.To {
			sends = append(sends, d.within(op, r))
		}
	}
	made.Send = func() error {
		for _, send := range sends {
			if err := send(); err != nil {
				return err
			}
		}
		return nil
	}
	d.declare(made, op)
	ex.EnqueueOp(made)
}

// within returns the function that launches the kernel of a Combine or an AdamW for a range.
func (d *Device) within(op *device.Op, r device.Range) (send func() error) {
	from := func(v device.Vector) kernels.Address { return d.operand(v).address() + 4*kernels.Address(r.From) }
	n, ex, at := r.To-r.From, d.exec, from(op.Out[0])
	launch := func(call kernels.Call) func() error { return func() error { return ex.Launch(call) } }
	if op.Kind == device.KindAdamW {
		return launch(kernels.AdamW(op.Adam, kernels.AdamVectors{G: at, M: from(op.Out[1]), V: from(op.Out[2]),
			X: from(op.In[0])}, n))
	}
	terms := d.kernelTerms(op.Terms)
	for i := range terms {
		terms[i].V += 4 * kernels.Address(r.From)
	}
	switch {
	case len(terms) == 0:
		return launch(kernels.Fill(at, n, 0))
	case len(terms) <= kernels.MaxTerms:
		return launch(kernels.Combine(at, n, terms...))
	}
	return func() error {
		return ex.WithLists(func(l []kernels.List) error { return ex.Launch(kernels.CombineList(at, n, l[0])) }, terms)
	}
}
