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
		d.combineFew(v, terms)
		return
	}
	t, touches := d.terms("Combine", terms, v.n)
	touches = append(touches, writing(&v.hazard))
	at, n, o := v.address(), v.n, d.owner
	switch {
	case n == 0:
	case len(t) == 0:
		o.sendCall(kernels.Fill(at, n, 0), touches...)
	case len(t) <= kernels.MaxTerms:
		o.sendCall(kernels.Combine(at, n, t...), touches...)
	default:
		o.send(func() error {
			return o.withLists(func(l []kernels.List) error { return o.launch(kernels.CombineList(at, n, l[0])) }, t)
		}, touches...)
	}
}

// combineFew is Combine of few terms, which goes together with others.
func (d *Device) combineFew(v *Vector, terms []device.Term) {
	c := &combination{dst: v.address(), n: v.n, terms: len(terms)}
	c.touches = c.few[:0]
	for k, t := range terms {
		x := d.vector("Combine", t.V)
		checkLen("Combine", "a term", x.n, v.n)
		c.term[k] = kernels.Term{A: float32(t.A), V: x.address()}
		c.touches = append(c.touches, reading(&x.hazard))
	}
	if v.n == 0 {
		return
	}
	c.touches = append(c.touches, writing(&v.hazard))
	c.joint = c
	d.owner.submitOp(&c.op)
}

// terms are the terms as kernels take them, and that they are read. All vectors have n elements.
func (d *Device) terms(op string, terms []device.Term, n int) ([]kernels.Term, []touch) {
	t, touches := make([]kernels.Term, len(terms)), make([]touch, len(terms), len(terms)+2)
	for k := range terms {
		v := d.vector(op, terms[k].V)
		checkLen(op, "a term", v.n, n)
		t[k], touches[k] = kernels.Term{A: float32(terms[k].A), V: v.address()}, reading(&v.hazard)
	}
	return t, touches
}

// withLists copies terms to device memory, as lists, for what use sends.
func (o *owner) withLists(use func([]kernels.List) error, terms ...[]kernels.Term) error {
	size := 0
	for _, t := range terms {
		size += 12*len(t) + 8
	}
	host, err := o.newBuffer(classOfBuffer(size))
	if err != nil {
		return err
	}
	room, err := o.alloc(size)
	if err != nil {
		return err
	}
	defer o.pool.give(room) // who takes it next comes later on the stream
	lists := fillLists(host.bytes[:0:size], room.address(), terms)
	err = o.api.Check(o.api.MemcpyHtoD(room.at, host.pointer(), uintptr(size), o.stream), "cuMemcpyHtoDAsync",
		"copying %d terms to the GPU", len(terms[0]))
	if err == nil {
		err = use(lists)
	}
	if !o.mark(func() { o.pinned.give(host) }) {
		o.pinned.give(host)
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
	o, p, q, bytes := d.owner, to.address(), from.address(), to.bytes()
	if x != nil {
		o.sendCall(kernels.Gather(p, q, x.address(), to.n), writing(&to.hazard), reading(&from.hazard),
			reading(&x.hazard))
		return
	}
	o.submitOp(&op{touches: []touch{writing(&to.hazard), reading(&from.hazard)}, call: kernels.Copy(p, q, to.n),
		send: func() error {
			return o.api.Check(o.api.MemcpyDtoD(driver.Pointer(p), driver.Pointer(q), bytes, o.stream), "cuMemcpyDtoDAsync",
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
	a.touches = append(a.few[:0], reading(&p.hazard), reading(&q.hazard))
	if x != nil {
		a.touches = append(a.touches, reading(&x.hazard))
	}
	t := make([]kernels.Term, 0, 2)
	for _, term := range to {
		v := d.vector("AddDiff", term.V)
		checkLen("AddDiff", "own", p.n, x.count("AddDiff", v.n))
		t = append(t, kernels.Term{A: float32(term.A), V: v.address()})
		a.touches = append(a.touches, writing(&v.hazard))
	}
	o, mine, its, at, n := d.owner, p.address(), q.address(), x.address(), p.n
	switch {
	case len(t) == 0:
		return
	case len(t) <= 2:
		a.call = kernels.AddDiff(mine, its, at, n, t...)
	default:
		all := slices.Clone(t)
		a.send = func() error {
			return o.withLists(func(l []kernels.List) error {
				return o.launch(kernels.AddDiffList(mine, its, at, n,
					l[0]))
			}, all)
		}
	}
	o.submitOp(a)
}

// AddDiffs computes V += A·S for each term of to, with S = start + Σ Aₖ·(own - Vₖ) over others. It
// panics if the lengths differ.
func (d *Device) AddDiffs(start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
	p := d.vector("AddDiffs", own)
	a, touches := d.terms("AddDiffs", others, p.n)
	touches = append(touches, reading(&p.hazard))
	var from kernels.Term
	if start.V != nil {
		s := d.vector("AddDiffs", start.V)
		checkLen("AddDiffs", "start", s.n, p.n)
		from, touches = kernels.Term{A: float32(start.A), V: s.address()}, append(touches, reading(&s.hazard))
	}
	t, written := d.terms("AddDiffs", to, p.n)
	for _, w := range written {
		touches = append(touches, writing(w.on))
	}
	if len(t) == 0 {
		return
	}
	o, mine, n := d.owner, p.address(), p.n
	if len(a) <= kernels.MaxTerms && len(t) <= 2 {
		o.sendCall(kernels.AddDiffs(n, from, mine, a, t...), touches...)
		return
	}
	o.send(func() error {
		return o.withLists(func(l []kernels.List) error {
			return o.launch(kernels.AddDiffsList(n, from, mine, l[0],
				l[1]))
		}, a, t)
	}, touches...)
}

// CombineDiffs is Combine(dst.V, base...) and then AddDiffs(start, own, others, dst, to...). It
// panics if the lengths differ.
func (d *Device) CombineDiffs(dst device.Term, base []device.Term, start device.Term, own device.Vector,
	others []device.Term, to ...device.Term) {
	n := d.vector("CombineDiffs", dst.V).n
	checkLen("CombineDiffs", "own", d.vector("CombineDiffs", own).n, n) // before anything is sent
	for _, terms := range [][]device.Term{others, to} {
		d.terms("CombineDiffs", terms, n)
	}
	if start.V != nil {
		checkLen("CombineDiffs", "start", d.vector("CombineDiffs", start.V).n, n)
	}
	d.Combine(dst.V, base...)
	d.AddDiffs(start, own, others, append([]device.Term{dst}, to...)...)
}

// ScatterAdd computes dst[Idx[j]] += A·V[j] for one part after the other. It panics as
// device.Device says.
func (d *Device) ScatterAdd(dst device.Vector, parts ...device.Part) {
	v := d.vector("ScatterAdd", dst)
	for _, p := range parts { // before anything is sent
		checkLen("ScatterAdd", "a part", d.vector("ScatterAdd", p.V).n, d.index("ScatterAdd", p.Idx).count("ScatterAdd",
			v.n))
	}
	for _, p := range parts {
		from, x := d.vector("ScatterAdd", p.V), d.index("ScatterAdd", p.Idx)
		call := kernels.ScatterAdd(v.address(), kernels.Term{A: float32(p.A), V: from.address()}, x.address(), from.n)
		d.owner.sendCall(call, writing(&v.hazard), reading(&from.hazard), x.touch())
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
	o, sum := d.owner, math.NaN()
	host, err := o.buffer(8)
	if err != nil {
		o.fail(err)
		return sum
	}
	arrived := make(chan struct{})
	n, p, q := x.n, x.address(), y.address()
	o.sendThen(func() error {
		room, err := o.alloc(8 * (1 + kernels.DotParts(n)))
		if err != nil {
			return err
		}
		defer o.pool.give(room)
		calls := kernels.Dot(room.address(), 0, p, q, room.address()+8, n, 1)
		if err := o.launch(calls[:]...); err != nil {
			return err
		}
		return o.api.Check(o.api.MemcpyDtoH(host.pointer(), driver.Pointer(room.at), 8, o.stream), "cuMemcpyDtoHAsync",
			"copying a scalar product from the GPU")
	}, func() { close(arrived) }, reading(&x.hazard), reading(&y.hazard))
	<-arrived
	if o.err() == nil {
		sum = math.Float64frombits(binary.LittleEndian.Uint64(host.bytes))
	}
	o.pinned.give(host)
	return sum
}

// combination is a Combine of few terms: those of several agents go in one launch.
type combination struct {
	op
	dst   kernels.Address
	n     int
	terms int
	term  [kernels.MaxTermsEach]kernels.Term
}

// joins tells whether two combinations have the same length, and as many terms.
func (c *combination) joins(other joint) bool {
	x, ok := other.(*combination)
	return ok && x.n == c.n && x.terms == c.terms
}

func (c *combination) stride() int { return 1 }

// combine is the call for one.
func (c *combination) combine() kernels.Call { return kernels.Combine(c.dst, c.n, c.term[:c.terms]...) }

func (c *combination) sendAll(o *owner, ops []*op) error {
	if o.march != nil && c.n <= o.march.most {
		for _, p := range ops {
			if err := o.march.step(p.joint.(*combination).combine()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := o.march.halt(); err != nil {
		return err
	}
	if len(ops) == 1 {
		return o.launch(c.combine())
	}
	for len(ops) > 0 {
		part := ops[:min(len(ops), kernels.MostEach)]
		ops = ops[len(part):]
		var dst [kernels.MostEach]kernels.Address
		var terms [kernels.MostEach][]kernels.Term
		for i, p := range part {
			one := p.joint.(*combination)
			dst[i], terms[i] = one.dst, one.term[:one.terms]
		}
		if err := o.launch(kernels.CombineEach(dst[:len(part)], c.n, terms[:len(part)])); err != nil {
			return err
		}
	}
	return nil
}
