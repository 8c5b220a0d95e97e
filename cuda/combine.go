package cuda

import (
	"encoding/binary"
	"math"
	"slices"

	"fspda/cuda/driver"
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
	accesses = append(accesses, writes(&v.dep))
	at, n, ex := v.address(), v.n, d.exec
	switch {
	case n == 0:
	case len(t) == 0:
		ex.enqueueCall(kernels.Fill(at, n, 0), accesses...)
	case len(t) <= kernels.MaxTerms:
		ex.enqueueCall(kernels.Combine(at, n, t...), accesses...)
	default:
		ex.enqueue(func() error {
			return ex.withLists(func(l []kernels.List) error { return ex.launch(kernels.CombineList(at, n, l[0])) }, t)
		}, accesses...)
	}
}

// combineFew is Combine of few terms, which goes together with others.
func (d *Device) combineBatched(v *Vector, terms []device.Term) {
	c := &batchedCombine{dst: v.address(), n: v.n, terms: len(terms)}
	c.accesses = c.accessArray[:0]
	for k, t := range terms {
		x := d.vector("Combine", t.V)
		checkLen("Combine", "a term", x.n, v.n)
		c.term[k] = kernels.Term{A: float32(t.A), V: x.address()}
		c.accesses = append(c.accesses, reads(&x.dep))
	}
	if v.n == 0 {
		return
	}
	c.accesses = append(c.accesses, writes(&v.dep))
	c.batch = c
	d.exec.enqueueOp(&c.op)
}

// terms are the terms as kernels take them, and that they are read. All vectors have n elements.
func (d *Device) kernelTerms(op string, terms []device.Term, n int) ([]kernels.Term, []access) {
	t, accesses := make([]kernels.Term, len(terms)), make([]access, len(terms), len(terms)+2)
	for k := range terms {
		v := d.vector(op, terms[k].V)
		checkLen(op, "a term", v.n, n)
		t[k], accesses[k] = kernels.Term{A: float32(terms[k].A), V: v.address()}, reads(&v.dep)
	}
	return t, accesses
}

// withLists copies terms to device memory, as lists, for what use sends.
func (ex *executor) withLists(use func([]kernels.List) error, terms ...[]kernels.Term) error {
	size := 0
	for _, t := range terms {
		size += 12*len(t) + 8
	}
	host, err := ex.buffer(bufferClass(size))
	if err != nil {
		return err
	}
	room, err := ex.alloc(size)
	if err != nil {
		return err
	}
	defer ex.pool.put(room) // who takes it next comes later on the stream
	lists := fillLists(host.bytes[:0:size], room.address(), terms)
	err = ex.api.Check(ex.api.MemcpyHtoD(room.at, host.pointer(), uintptr(size), ex.stream), "cuMemcpyHtoDAsync",
		"copying %d terms to the GPU", len(terms[0]))
	if err == nil {
		err = use(lists)
	}
	if !ex.whenReached(func() { ex.pinned.put(host) }) {
		ex.pinned.put(host)
	}
	return err
}

// fillLists writes lists to b, the copy of what will lie at an address: the addresses of the
// vectors, then their coefficients.
func fillLists(b []byte, at kernels.Address, terms [][]kernels.Term) []kernels.List {
	lists := make([]kernels.List, len(terms))
	for i, t := range terms {
		lists[i] = kernels.List{V: at + kernels.Address(len(b)), A: at + kernels.Address(len(b)+8*len(t)), Len: len(t)}
		for _, x := range t {
			b = binary.LittleEndian.AppendUint64(b, uint64(x.V))
		}
		for _, x := range t {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x.A))
		}
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
	}
	return lists
}

// Gather computes dst[j] = src[idx[j]]. It panics as device.Device says.
func (d *Device) Gather(dst, src device.Vector, idx device.Index) {
	to, from, x := d.vector("Gather", dst), d.vector("Gather", src), d.index("Gather", idx)
	checkLen("Gather", "dst", to.n, x.count("Gather", from.n))
	if to.n == 0 {
		return
	}
	ex, p, q, bytes := d.exec, to.address(), from.address(), to.bytes()
	if x != nil {
		ex.enqueueCall(kernels.Gather(p, q, x.address(), to.n), writes(&to.dep), reads(&from.dep),
			reads(&x.dep))
		return
	}
	ex.enqueueOp(&op{accesses: []access{writes(&to.dep), reads(&from.dep)}, call: kernels.Copy(p, q, to.n),
		send: func() error {
			return ex.api.Check(ex.api.MemcpyDtoD(driver.Pointer(p), driver.Pointer(q), bytes, ex.stream), "cuMemcpyDtoDAsync",
				"copying a vector of %d bytes", bytes)
		}})
}

// AddDiff computes V[idx[j]] += A·(own[j] - other[j]) for each term. It panics as device.Device
// says.
func (d *Device) AddDiff(own, other device.Vector, idx device.Index, to ...device.Term) {
	p, q, x := d.vector("AddDiff", own), d.vector("AddDiff", other), d.index("AddDiff", idx)
	checkLen("AddDiff", "other", q.n, p.n)
	if x != nil {
		checkLen("AddDiff", "own", p.n, x.n)
	}
	a := &op{}
	a.accesses = append(a.accessArray[:0], reads(&p.dep), reads(&q.dep))
	if x != nil {
		a.accesses = append(a.accesses, reads(&x.dep))
	}
	t := make([]kernels.Term, 0, 2)
	for _, term := range to {
		v := d.vector("AddDiff", term.V)
		checkLen("AddDiff", "own", p.n, x.count("AddDiff", v.n))
		t = append(t, kernels.Term{A: float32(term.A), V: v.address()})
		a.accesses = append(a.accesses, writes(&v.dep))
	}
	ex, mine, its, at, n := d.exec, p.address(), q.address(), x.address(), p.n
	switch {
	case len(t) == 0:
		return
	case len(t) <= 2:
		a.call = kernels.AddDiff(mine, its, at, n, t...)
	default:
		all := slices.Clone(t)
		a.send = func() error {
			return ex.withLists(func(l []kernels.List) error {
				return ex.launch(kernels.AddDiffList(mine, its, at, n,
					l[0]))
			}, all)
		}
	}
	ex.enqueueOp(a)
}

// AddDiffs computes V += A·S for each term of to, with S = start + Σ Aₖ·(own - Vₖ) over others. It
// panics if the lengths differ.
func (d *Device) AddDiffs(start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
	p := d.vector("AddDiffs", own)
	a, accesses := d.kernelTerms("AddDiffs", others, p.n)
	accesses = append(accesses, reads(&p.dep))
	var from kernels.Term
	if start.V != nil {
		s := d.vector("AddDiffs", start.V)
		checkLen("AddDiffs", "start", s.n, p.n)
		from, accesses = kernels.Term{A: float32(start.A), V: s.address()}, append(accesses, reads(&s.dep))
	}
	t, written := d.kernelTerms("AddDiffs", to, p.n)
	for _, w := range written {
		accesses = append(accesses, writes(w.on))
	}
	if len(t) == 0 {
		return
	}
	ex, mine, n := d.exec, p.address(), p.n
	if len(a) <= kernels.MaxTerms && len(t) <= 2 {
		ex.enqueueCall(kernels.AddDiffs(n, from, mine, a, t...), accesses...)
		return
	}
	ex.enqueue(func() error {
		return ex.withLists(func(l []kernels.List) error {
			return ex.launch(kernels.AddDiffsList(n, from, mine, l[0],
				l[1]))
		}, a, t)
	}, accesses...)
}

// CombineDiffs is Combine(dst.V, base...) and then AddDiffs(start, own, others, dst, to...). It
// panics if the lengths differ.
func (d *Device) CombineDiffs(dst device.Term, base []device.Term, start device.Term, own device.Vector,
	others []device.Term, to ...device.Term) {
	n := d.vector("CombineDiffs", dst.V).n
	checkLen("CombineDiffs", "own", d.vector("CombineDiffs", own).n, n) // before anything is sent
	for _, terms := range [][]device.Term{others, to} {
		d.kernelTerms("CombineDiffs", terms, n)
	}
	if start.V != nil {
		checkLen("CombineDiffs", "start", d.vector("CombineDiffs", start.V).n, n)
	}
	d.Combine(dst.V, base...)
	d.AddDiffs(start, own, others, append([]device.Term{dst}, to...)...)
}

// ScatterAdd computes dst[Idx[j]] += A·V[j] for one part after the other. It panics as
// device.Device says.
func (d *Device) ScatterAdd(dst device.Vector, parts ...device.SparseTerm) {
	v := d.vector("ScatterAdd", dst)
	for _, p := range parts { // before anything is sent
		checkLen("ScatterAdd", "a part", d.vector("ScatterAdd", p.V).n, d.index("ScatterAdd", p.Idx).count("ScatterAdd",
			v.n))
	}
	for _, p := range parts {
		from, x := d.vector("ScatterAdd", p.V), d.index("ScatterAdd", p.Idx)
		call := kernels.ScatterAdd(v.address(), kernels.Term{A: float32(p.A), V: from.address()}, x.address(), from.n)
		d.exec.enqueueCall(call, writes(&v.dep), reads(&from.dep), x.access())
	}
}

// Dot returns Σ a[k]·b[k], with the bits of the CPU's. It panics if the lengths differ. After a
// failure it is not a number.
func (d *Device) Dot(a, b device.Vector) float64 {
	x, y := d.vector("Dot", a), d.vector("Dot", b)
	checkLen("Dot", "b", y.n, x.n)
	if x.n == 0 {
		return 0
	}
	ex, sum := d.exec, math.NaN()
	host, err := ex.takeBuffer(8)
	if err != nil {
		ex.fail(err)
		return sum
	}
	arrived := make(chan struct{})
	n, p, q := x.n, x.address(), y.address()
	ex.enqueueThen(func() error {
		room, err := ex.alloc(8 * (1 + kernels.DotParts(n)))
		if err != nil {
			return err
		}
		defer ex.pool.put(room)
		calls := kernels.Dot(room.address(), 0, p, q, room.address()+8, n, 1)
		if err := ex.launch(calls[:]...); err != nil {
			return err
		}
		return ex.api.Check(ex.api.MemcpyDtoH(host.pointer(), driver.Pointer(room.at), 8, ex.stream), "cuMemcpyDtoHAsync",
			"copying a scalar product from the GPU")
	}, func() { close(arrived) }, reads(&x.dep), reads(&y.dep))
	<-arrived
	if ex.err() == nil {
		sum = math.Float64frombits(binary.LittleEndian.Uint64(host.bytes))
	}
	ex.pinned.put(host)
	return sum
}

// combination is a Combine of few terms: those of several agents go in one launch.
type batchedCombine struct {
	op
	dst   kernels.Address
	n     int
	terms int
	term  [kernels.MaxTermsEach]kernels.Term
}

// joins tells whether two combinations have the same length, and as many terms.
func (c *batchedCombine) batchesWith(other batchable) bool {
	x, ok := other.(*batchedCombine)
	return ok && x.n == c.n && x.terms == c.terms
}

func (c *batchedCombine) levelStride() int { return 1 }

// combine is the call for one.
func (c *batchedCombine) call() kernels.Call { return kernels.Combine(c.dst, c.n, c.term[:c.terms]...) }

func (c *batchedCombine) sendBatch(ex *executor, ops []*op) error {
	if ex.mega != nil && c.n <= ex.mega.maxThreads {
		for _, p := range ops {
			if err := ex.mega.append(p.batch.(*batchedCombine).call()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ex.mega.flush(); err != nil {
		return err
	}
	if len(ops) == 1 {
		return ex.launch(c.call())
	}
	for len(ops) > 0 {
		part := ops[:min(len(ops), kernels.MostEach)]
		ops = ops[len(part):]
		var dst [kernels.MostEach]kernels.Address
		var terms [kernels.MostEach][]kernels.Term
		for i, p := range part {
			one := p.batch.(*batchedCombine)
			dst[i], terms[i] = one.dst, one.term[:one.terms]
		}
		if err := ex.launch(kernels.CombineEach(dst[:len(part)], c.n, terms[:len(part)])); err != nil {
			return err
		}
	}
	return nil
}
