package cuda

import (
	"encoding/binary"
	"math"
	"slices"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// Do implements device.Device.Do. It panics before it sends anything where vectors do not fit or
// are of another device, and returns when the results of all inner products have arrived.
//
// It is the place to fuse neighbours. Today each operation has a kernel: agents share launches
// instead, see batchedCombine.
func (d *Device) Do(ops ...device.Op) {
	for i := range ops {
		ops[i].Check()
		d.eachOperand(&ops[i], func(executor.Access) {})
	}
	var waits []func()
	for i := range ops {
		if ops[i].Kind == device.KindDot {
			waits = append(waits, d.sendDot(&ops[i]))
		} else {
			d.send(&ops[i])
		}
	}
	for _, wait := range waits {
		wait()
	}
}

// send queues an operation without a result.
func (d *Device) send(op *device.Op) {
	if op.Only != nil {
		d.sendWithin(op)
		return
	}
	switch op.Kind {
	case device.KindCombine:
		d.sendCombine(op)
	case device.KindGather:
		d.sendGather(op)
	case device.KindAddDiff:
		d.sendAddDiff(op)
	case device.KindAddDiffs:
		d.sendAddDiffs(op)
	case device.KindScatterAdd:
		d.sendScatterAdd(op)
	case device.KindMoveCopy:
		d.sendMoveCopy(op)
	case device.KindAdamW:
		d.sendAdamW(op)
	case device.KindMultiply:
		d.sendMultiply(op)
	case device.KindOrthogonalize:
		d.sendOrthogonalize(op)
	}
}

// eachOperand passes the operands of an operation to declare. It panics unless all are of this
// device.
func (d *Device) eachOperand(op *device.Op, declare func(executor.Access)) {
	for _, v := range op.Out {
		if v != nil {
			declare(executor.Writes(&d.operand(v).dep))
		}
	}
	for _, t := range op.To {
		declare(executor.Writes(&d.operand(t.V).dep))
	}
	for _, v := range [...]device.Vector{op.In[0], op.In[1], op.Start.V} {
		if v != nil {
			declare(executor.Reads(&d.operand(v).dep))
		}
	}
	for _, t := range op.Terms {
		declare(executor.Reads(&d.operand(t.V).dep))
	}
	for _, p := range op.Parts {
		declare(executor.Reads(&d.operand(p.V).dep))
		if x := d.index("Do", p.Idx); x != nil {
			declare(executor.Reads(&x.dep))
		}
	}
	if x := d.index("Do", op.Idx); x != nil {
		declare(executor.Reads(&x.dep))
	}
}

// declare declares the operands of an operation.
func (d *Device) declare(p *executor.Op, op *device.Op) { d.eachOperand(op, p.Declare) }

// enqueue queues the kernel of an operation.
func (d *Device) enqueue(op *device.Op, call kernels.Call) {
	p := &executor.Op{Call: call}
	d.declare(p, op)
	d.exec.EnqueueOp(p)
}

// enqueueLists queues the kernel of an operation whose terms are listed in device memory.
func (d *Device) enqueueLists(op *device.Op, call func([]kernels.List) kernels.Call, terms ...[]kernels.Term) {
	ex := d.exec
	p := &executor.Op{Send: func() error {
		return ex.WithLists(func(l []kernels.List) error { return ex.Launch(call(l)) }, terms...)
	}}
	d.declare(p, op)
	ex.EnqueueOp(p)
}

// operand returns v as a vector of this device; nil stays nil.
func (d *Device) operand(v device.Vector) *Vector {
	if v == nil {
		return nil
	}
	return d.vector("Do", v)
}

func (d *Device) kernelTerms(terms []device.Term) []kernels.Term {
	t := make([]kernels.Term, len(terms))
	for k := range terms {
		t[k] = d.kernelTerm(terms[k])
	}
	return t
}

func (d *Device) kernelTerm(t device.Term) kernels.Term {
	return kernels.Term{A: float32(t.A), V: d.operand(t.V).address()}
}

func (d *Device) sendCombine(op *device.Op) {
	v := d.operand(op.Out[0])
	at, n, terms := v.address(), v.n, op.Terms
	switch {
	case n == 0:
	case len(terms) == 0:
		d.enqueue(op, kernels.Fill(at, n, 0))
	case len(terms) <= kernels.MaxTermsEach:
		c := &batchedCombine{dst: at, n: n, terms: len(terms)}
		for k, t := range terms {
			c.term[k] = d.kernelTerm(t)
		}
		c.Batch = c
		d.declare(&c.Op, op)
		d.exec.EnqueueOp(&c.Op)
	case len(terms) <= kernels.MaxTerms:
		d.enqueue(op, kernels.Combine(at, n, d.kernelTerms(terms)...))
	default:
		d.enqueueLists(op, func(l []kernels.List) kernels.Call { return kernels.CombineList(at, n, l[0]) },
			d.kernelTerms(terms))
	}
}

// sendGather queues a Gather. One that may be done with the gradient takes the phase in which a
// batch group computes that, so that agents that exchange compute their next gradients together.
// The gradient of a large network would delay it: then it takes its own.
func (d *Device) sendGather(op *device.Op) {
	to, from, x := d.operand(op.Out[0]), d.operand(op.In[0]), d.index("Do", op.Idx)
	if to.n == 0 {
		return
	}
	ex, p, q, bytes := d.exec, to.address(), from.address(), to.bytes()
	made := &executor.Op{}
	if x != nil {
		made.Call = kernels.Gather(p, q, x.address(), to.n)
	} else {
		made.Call = kernels.Copy(p, q, to.n)
		made.Send = func() error { return ex.CopyWithin(driver.Pointer(p), driver.Pointer(q), bytes) }
	}
	if op.WithGradient && d.mega != nil && from.grouped.Load() {
		made.Batch = withGradient{made}
	}
	d.declare(made, op)
	ex.EnqueueOp(made)
}

// withGradient is an operation in the level of gradients.
type withGradient struct{ op *executor.Op }

// BatchesWith is false: each is a call of its own.
func (withGradient) BatchesWith(executor.Batchable) bool { return false }

func (withGradient) LevelStride() int { return executor.LevelsPerIteration }

func (g withGradient) SendBatch(ex *executor.Executor, _ []*executor.Op) error { return ex.Send(g.op) }

func (d *Device) sendAddDiff(op *device.Op) {
	own, other, x := d.operand(op.In[0]), d.operand(op.In[1]), d.index("Do", op.Idx)
	mine, its, at, n, to := own.address(), other.address(), x.address(), own.n, d.kernelTerms(op.To)
	switch {
	case len(to) == 0:
	case len(to) <= 2:
		d.enqueue(op, kernels.AddDiff(mine, its, at, n, to...))
	default:
		d.enqueueLists(op, func(l []kernels.List) kernels.Call {
			return kernels.AddDiffList(mine, its, at, n, l[0])
		}, to)
	}
}

func (d *Device) sendAddDiffs(op *device.Op) {
	own := d.operand(op.In[0])
	mine, n, start := own.address(), own.n, d.kernelTerm(op.Start)
	others, to := d.kernelTerms(op.Terms), d.kernelTerms(op.To)
	switch {
	case len(to) == 0:
	case len(others) <= kernels.MaxTerms && len(to) <= 2:
		d.enqueue(op, kernels.AddDiffs(n, start, mine, others, to...))
	default:
		d.enqueueLists(op, func(l []kernels.List) kernels.Call {
			return kernels.AddDiffsList(n, start, mine, l[0], l[1])
		}, others, to)
	}
}

// sendScatterAdd queues a kernel for each part.
func (d *Device) sendScatterAdd(op *device.Op) {
	to := d.operand(op.Out[0])
	for k, p := range op.Parts {
		part := *op
		part.Parts = op.Parts[k : k+1]
		d.enqueue(&part, kernels.ScatterAdd(to.address(), kernels.Term{A: float32(p.A), V: d.operand(p.V).address()},
			d.index("Do", p.Idx).address(), p.V.Len()))
	}
}

func (d *Device) sendMoveCopy(op *device.Op) {
	moves, to, v, w := d.operand(op.Out[0]), d.operand(op.Out[1]), d.operand(op.In[0]), d.operand(op.In[1])
	if moves.n > 0 {
		d.enqueue(op, kernels.MoveCopy(moves.address(), to.address(), v.address(), w.address(),
			d.index("Do", op.Idx).address(), moves.n))
	}
}

func (d *Device) sendAdamW(op *device.Op) {
	g := d.operand(op.Out[0])
	if g.n == 0 {
		return
	}
	c := &batchedAdam{coefficients: op.Adam, n: g.n, of: kernels.AdamVectors{G: g.address(),
		M: d.operand(op.Out[1]).address(), V: d.operand(op.Out[2]).address(), X: d.operand(op.In[0]).address()}}
	c.Batch = c
	d.declare(&c.Op, op)
	d.exec.EnqueueOp(&c.Op)
}

func (d *Device) sendMultiply(op *device.Op) {
	c, a, b := d.operand(op.Out[0]), d.operand(op.In[0]), d.operand(op.In[1])
	if call := kernels.Multiply(c.address(), a.address(), b.address(), op.Product); !call.Empty() {
		d.enqueue(op, call)
	}
}

// sendDot queues a Dot with the bits of package cpu. wait stores its result, which is NaN after a
// failure.
func (d *Device) sendDot(op *device.Op) (wait func()) {
	x, y := d.operand(op.In[0]), d.operand(op.In[1])
	*op.Sum = 0
	if x.n == 0 {
		return func() {}
	}
	*op.Sum = math.NaN()
	ex := d.exec
	host, err := ex.TakeBuffer(8)
	if err != nil {
		ex.Fail(err)
		return func() {}
	}
	arrived := make(chan struct{})
	n, p, q := x.n, x.address(), y.address()
	made := &executor.Op{Then: func() { close(arrived) }, Send: func() error {
		scratch, err := ex.Alloc(8 * (1 + kernels.DotParts(n)))
		if err != nil {
			return err
		}
		defer ex.PutBlock(scratch)
		calls := kernels.Dot(scratch.Address(), 0, p, q, scratch.Address()+8, n, 1)
		if err := ex.Launch(calls[:]...); err != nil {
			return err
		}
		return ex.CopyFromDevice(host.Pointer(), scratch.At, 8)
	}}
	d.declare(made, op)
	ex.EnqueueOp(made)
	return func() {
		<-arrived
		if ex.Err() == nil {
			*op.Sum = math.Float64frombits(binary.LittleEndian.Uint64(host.Bytes))
		}
		ex.PutBuffer(host)
	}
}

// batchedCombine is a Combine of few terms, which shares a launch with Combines of other agents.
type batchedCombine struct {
	executor.Op
	dst   kernels.Address
	n     int
	terms int
	term  [kernels.MaxTermsEach]kernels.Term
}

// BatchesWith reports whether two combinations have the same length and number of terms.
func (c *batchedCombine) BatchesWith(other executor.Batchable) bool {
	x, ok := other.(*batchedCombine)
	return ok && x.n == c.n && x.terms == c.terms
}

func (c *batchedCombine) LevelStride() int { return 1 }

// call returns the kernel for this combination alone.
func (c *batchedCombine) call() kernels.Call { return kernels.Combine(c.dst, c.n, c.term[:c.terms]...) }

func (c *batchedCombine) SendBatch(ex *executor.Executor, ops []*executor.Op) error {
	return sendBatch(ex, ops, c.n, func(p *executor.Op) kernels.Call { return p.Batch.(*batchedCombine).call() },
		func(part []*executor.Op) kernels.Call {
			var dst [kernels.MostEach]kernels.Address
			var terms [kernels.MostEach][]kernels.Term
			for i, p := range part {
				one := p.Batch.(*batchedCombine)
				dst[i], terms[i] = one.dst, one.term[:one.terms]
			}
			return kernels.CombineEach(dst[:len(part)], c.n, terms[:len(part)])
		})
}

// sendBatch sends operations on n numbers each: in the megakernel, or several in one launch.
func sendBatch(ex *executor.Executor, ops []*executor.Op, n int, alone func(*executor.Op) kernels.Call,
	together func([]*executor.Op) kernels.Call) error {
	if ex.Collector.AcceptsVectors(n) {
		for _, p := range ops {
			if err := ex.Collector.Append(alone(p)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(ops) == 1 {
		if err := ex.Collector.Flush(); err != nil {
			return err
		}
		return ex.Launch(alone(ops[0]))
	}
	return sendTogether(ex, ops, together)
}

// sendTogether sends operations, each of an agent, in as few launches as possible.
func sendTogether(ex *executor.Executor, ops []*executor.Op, together func([]*executor.Op) kernels.Call) error {
	if err := ex.Collector.Flush(); err != nil {
		return err
	}
	for part := range slices.Chunk(ops, kernels.MostEach) {
		if err := ex.Launch(together(part)); err != nil {
			return err
		}
	}
	return nil
}

// batchedAdam is an AdamW, which shares a launch with AdamWs of other agents in the same step.
type batchedAdam struct {
	executor.Op
	coefficients device.Adam
	of           kernels.AdamVectors
	n            int
}

// BatchesWith reports whether two operations have the same length and coefficients.
func (c *batchedAdam) BatchesWith(other executor.Batchable) bool {
	x, ok := other.(*batchedAdam)
	return ok && x.n == c.n && x.coefficients == c.coefficients
}

func (c *batchedAdam) LevelStride() int { return 1 }

func (c *batchedAdam) SendBatch(ex *executor.Executor, ops []*executor.Op) error {
	return sendBatch(ex, ops, c.n, func(p *executor.Op) kernels.Call {
		return kernels.AdamW(c.coefficients, p.Batch.(*batchedAdam).of, c.n)
	}, func(part []*executor.Op) kernels.Call {
		var all []kernels.AdamVectors
		for _, p := range part {
			all = append(all, p.Batch.(*batchedAdam).of)
		}
		return kernels.AdamWEach(c.coefficients, all, c.n)
	})
}
