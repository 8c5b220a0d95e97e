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

// Combine computes dst = Σ Aₖ·Vₖ. It panics if the lengths differ.
func (d *Device) Combine(dst device.Vector, terms ...device.Term) {
	v := d.vector("Combine", dst)
	if len(terms) > 0 && len(terms) <= kernels.MaxTermsEach {
		d.combineBatched(v, terms)
		return
	}
	t, accesses := d.kernelTerms("Combine", terms, v.n)
	accesses = append(accesses, executor.Writes(&v.dep))
	at, n, ex := v.address(), v.n, d.exec
	switch {
	case n == 0:
	case len(t) == 0:
		ex.EnqueueCall(kernels.Fill(at, n, 0), accesses...)
	case len(t) <= kernels.MaxTerms:
		ex.EnqueueCall(kernels.Combine(at, n, t...), accesses...)
	default:
		ex.Enqueue(func() error {
			return ex.WithLists(func(l []kernels.List) error { return ex.Launch(kernels.CombineList(at, n, l[0])) }, t)
		}, accesses...)
	}
}

// combineBatched is Combine of few terms, which may share a launch with others.
func (d *Device) combineBatched(v *Vector, terms []device.Term) {
	c := &batchedCombine{dst: v.address(), n: v.n, terms: len(terms)}
	for k, t := range terms {
		x := d.vector("Combine", t.V)
		checkLen("Combine", "a term", x.n, v.n)
		c.term[k] = kernels.Term{A: float32(t.A), V: x.address()}
		c.Reads(&x.dep)
	}
	if v.n == 0 {
		return
	}
	c.Writes(&v.dep)
	c.Batch = c
	d.exec.EnqueueOp(&c.Op)
}

// kernelTerms returns the terms for kernels, and that they are read. All vectors have n elements.
func (d *Device) kernelTerms(op string, terms []device.Term, n int) ([]kernels.Term, []executor.Access) {
	t, accesses := make([]kernels.Term, len(terms)), make([]executor.Access, len(terms), len(terms)+2)
	for k := range terms {
		v := d.vector(op, terms[k].V)
		checkLen(op, "a term", v.n, n)
		t[k], accesses[k] = kernels.Term{A: float32(terms[k].A), V: v.address()}, executor.Reads(&v.dep)
	}
	return t, accesses
}

// Gather computes dst[j] = src[idx[j]]. It panics as device.Device says.
func (d *Device) Gather(dst, src device.Vector, idx device.Index) {
	if p := d.gather("Gather", dst, src, idx); p != nil {
		d.exec.EnqueueOp(p)
	}
}

// GatherWithGradient is Gather from the model of the next gradient, in the phase in which a batch
// group computes that: it takes no phase of its own, and agents that exchange compute their next
// gradients together. The gradient of a large network would delay it: then it is an ordinary
// Gather.
func (d *Device) GatherWithGradient(dst, src device.Vector, idx device.Index) {
	if p := d.gather("GatherWithGradient", dst, src, idx); p != nil {
		if d.exec.Mega != nil && d.vector("GatherWithGradient", src).grouped.Load() {
			p.Batch = withGradient{p}
		}
		d.exec.EnqueueOp(p)
	}
}

func (d *Device) gather(op string, dst, src device.Vector, idx device.Index) *executor.Op {
	to, from, x := d.vector(op, dst), d.vector(op, src), d.index(op, idx)
	checkLen(op, "dst", to.n, x.count(op, from.n))
	if to.n == 0 {
		return nil
	}
	ex, p, q, bytes := d.exec, to.address(), from.address(), to.bytes()
	made := &executor.Op{}
	if x != nil {
		made.Call = kernels.Gather(p, q, x.address(), to.n)
		made.Reads(&x.dep)
	} else {
		made.Call = kernels.Copy(p, q, to.n)
		made.Send = func() error { return ex.CopyWithin(driver.Pointer(p), driver.Pointer(q), bytes) }
	}
	made.Writes(&to.dep)
	made.Reads(&from.dep)
	return made
}

// withGradient is an operation in the level of gradients.
type withGradient struct{ op *executor.Op }

// BatchesWith is false: each is a call of its own.
func (withGradient) BatchesWith(executor.Batchable) bool { return false }

func (withGradient) LevelStride() int { return executor.LevelsPerIteration }

func (g withGradient) SendBatch(ex *executor.Executor, _ []*executor.Op) error { return ex.Send(g.op) }

// AddDiff computes V[idx[j]] += A·(own[j] - other[j]) for each term. It panics as device.Device
// says.
func (d *Device) AddDiff(own, other device.Vector, idx device.Index, to ...device.Term) {
	p, q, x := d.vector("AddDiff", own), d.vector("AddDiff", other), d.index("AddDiff", idx)
	checkLen("AddDiff", "other", q.n, p.n)
	if x != nil {
		checkLen("AddDiff", "own", p.n, x.n)
	}
	a := &executor.Op{}
	a.Reads(&p.dep)
	a.Reads(&q.dep)
	if x != nil {
		a.Reads(&x.dep)
	}
	t := make([]kernels.Term, 0, 2)
	for _, term := range to {
		v := d.vector("AddDiff", term.V)
		checkLen("AddDiff", "own", p.n, x.count("AddDiff", v.n))
		t = append(t, kernels.Term{A: float32(term.A), V: v.address()})
		a.Writes(&v.dep)
	}
	ex, mine, its, at, n := d.exec, p.address(), q.address(), x.address(), p.n
	switch {
	case len(t) == 0:
		return
	case len(t) <= 2:
		a.Call = kernels.AddDiff(mine, its, at, n, t...)
	default:
		all := slices.Clone(t)
		a.Send = func() error {
			return ex.WithLists(func(l []kernels.List) error {
				return ex.Launch(kernels.AddDiffList(mine, its, at, n, l[0]))
			}, all)
		}
	}
	ex.EnqueueOp(a)
}

// AddDiffs computes V += A·S for each term of to, with S = start + Σ Aₖ·(own - Vₖ) over others. It
// panics if the lengths differ.
func (d *Device) AddDiffs(start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
	p := d.vector("AddDiffs", own)
	a, accesses := d.kernelTerms("AddDiffs", others, p.n)
	accesses = append(accesses, executor.Reads(&p.dep))
	var from kernels.Term
	if start.V != nil {
		s := d.vector("AddDiffs", start.V)
		checkLen("AddDiffs", "start", s.n, p.n)
		from, accesses = kernels.Term{A: float32(start.A), V: s.address()}, append(accesses, executor.Reads(&s.dep))
	}
	t, written := d.kernelTerms("AddDiffs", to, p.n)
	for _, w := range written {
		accesses = append(accesses, executor.Writes(w.On))
	}
	if len(t) == 0 {
		return
	}
	ex, mine, n := d.exec, p.address(), p.n
	if len(a) <= kernels.MaxTerms && len(t) <= 2 {
		ex.EnqueueCall(kernels.AddDiffs(n, from, mine, a, t...), accesses...)
		return
	}
	ex.Enqueue(func() error {
		return ex.WithLists(func(l []kernels.List) error {
			return ex.Launch(kernels.AddDiffsList(n, from, mine, l[0], l[1]))
		}, a, t)
	}, accesses...)
}

// CombineAll is Combine of one combination after the other. It panics if the lengths differ.
func (d *Device) CombineAll(all ...device.Combination) {
	for _, c := range all { // checks everything before it sends anything
		n := d.vector("CombineAll", all[0].Dst).n
		checkLen("CombineAll", "a Dst", d.vector("CombineAll", c.Dst).n, n)
		d.kernelTerms("CombineAll", c.Terms, n)
	}
	for _, c := range all {
		d.Combine(c.Dst, c.Terms...)
	}
}

// CombineDiffs is Combine(dst.V, base...) and then AddDiffs(start, own, others, dst, to...). It
// panics if the lengths differ.
func (d *Device) CombineDiffs(dst device.Term, base []device.Term, start device.Term, own device.Vector,
	others []device.Term, to ...device.Term) {
	n := d.vector("CombineDiffs", dst.V).n
	checkLen("CombineDiffs", "own", d.vector("CombineDiffs", own).n, n) // checks everything before it sends anything
	for _, terms := range [][]device.Term{others, to} {
		d.kernelTerms("CombineDiffs", terms, n)
	}
	if start.V != nil {
		checkLen("CombineDiffs", "start", d.vector("CombineDiffs", start.V).n, n)
	}
	d.Combine(dst.V, base...)
	d.AddDiffs(start, own, others, append([]device.Term{dst}, to...)...)
}

// ScatterAdd computes dst[Idx[j]] += A·V[j] for each part in turn. It panics as device.Device says.
func (d *Device) ScatterAdd(dst device.Vector, parts ...device.SparseTerm) {
	v := d.vector("ScatterAdd", dst)
	for _, p := range parts { // checks everything before it sends anything
		checkLen("ScatterAdd", "a part", d.vector("ScatterAdd", p.V).n, d.index("ScatterAdd", p.Idx).count("ScatterAdd",
			v.n))
	}
	for _, p := range parts {
		from, x := d.vector("ScatterAdd", p.V), d.index("ScatterAdd", p.Idx)
		call := kernels.ScatterAdd(v.address(), kernels.Term{A: float32(p.A), V: from.address()}, x.address(), from.n)
		d.exec.EnqueueCall(call, executor.Writes(&v.dep), executor.Reads(&from.dep), x.access())
	}
}

// MoveCopy is device.Device.MoveCopy. It panics if the lengths differ.
func (d *Device) MoveCopy(q, copy, v, w device.Vector, idx device.Index) {
	moves, to, from, x := d.vector("MoveCopy", q), d.vector("MoveCopy", copy), d.vector("MoveCopy", v),
		d.index("MoveCopy", idx)
	checkLen("MoveCopy", "v", from.n, to.n)
	checkLen("MoveCopy", "q", moves.n, x.count("MoveCopy", to.n))
	accesses := []executor.Access{executor.Writes(&moves.dep), executor.Writes(&to.dep), executor.Reads(&from.dep),
		x.access()}
	var second kernels.Address
	if w != nil {
		more := d.vector("MoveCopy", w)
		checkLen("MoveCopy", "w", more.n, to.n)
		second, accesses = more.address(), append(accesses, executor.Reads(&more.dep))
	}
	if moves.n > 0 {
		call := kernels.MoveCopy(moves.address(), to.address(), from.address(), second, x.address(), moves.n)
		d.exec.EnqueueCall(call, accesses...)
	}
}

// AdamW is device.Device.AdamW, with a kernel for each combination. It panics if the lengths
// differ.
func (d *Device) AdamW(a device.Adam, g, m, v, x device.Vector, then ...device.Combination) {
	to, first, second, at := d.vector("AdamW", g), d.vector("AdamW", m), d.vector("AdamW", v), d.vector("AdamW", x)
	checkLen("AdamW", "m", first.n, to.n)
	checkLen("AdamW", "v", second.n, to.n)
	checkLen("AdamW", "x", at.n, to.n)
	for _, c := range then { // checks everything before it sends anything
		checkLen("AdamW", "a Dst", d.vector("AdamW", c.Dst).n, to.n)
		d.kernelTerms("AdamW", c.Terms, to.n)
	}
	if to.n == 0 {
		return
	}
	c := &batchedAdam{coefficients: a, n: to.n, of: kernels.AdamVectors{G: to.address(), M: first.address(),
		V: second.address(), X: at.address()}}
	c.Batch = c
	d.exec.EnqueueOp(&c.Op, executor.Writes(&to.dep), executor.Writes(&first.dep), executor.Writes(&second.dep),
		executor.Reads(&at.dep))
	for _, c := range then {
		d.Combine(c.Dst, c.Terms...)
	}
}

// Dot returns Σ a[k]·b[k], with the bits of package cpu. It panics if the lengths differ. After a
// failure it is NaN.
func (d *Device) Dot(a, b device.Vector) float64 {
	x, y := d.vector("Dot", a), d.vector("Dot", b)
	checkLen("Dot", "b", y.n, x.n)
	if x.n == 0 {
		return 0
	}
	ex, sum := d.exec, math.NaN()
	host, err := ex.TakeBuffer(8)
	if err != nil {
		ex.Fail(err)
		return sum
	}
	arrived := make(chan struct{})
	n, p, q := x.n, x.address(), y.address()
	ex.EnqueueThen(func() error {
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
	}, func() { close(arrived) }, executor.Reads(&x.dep), executor.Reads(&y.dep))
	<-arrived
	if ex.Err() == nil {
		sum = math.Float64frombits(binary.LittleEndian.Uint64(host.Bytes))
	}
	ex.PutBuffer(host)
	return sum
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
	if ex.Mega != nil && n <= ex.Mega.MaxThreads {
		for _, p := range ops {
			if err := ex.Mega.Append(alone(p)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ex.Mega.Flush(); err != nil {
		return err
	}
	if len(ops) == 1 {
		return ex.Launch(alone(ops[0]))
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
