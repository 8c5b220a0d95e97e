package cuda

import (
	"encoding/binary"
	"math"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// Combine computes dst = Σ Aₖ·Vₖ. It panics if the lengths differ.
func (d *Device) Combine(dst device.Vector, terms ...device.Term) {
	v := d.vector("Combine", dst)
	t, alive := d.terms("Combine", terms, v.n)
	d.owner.send(func() error {
		defer keep(v, alive)
		switch {
		case len(t) == 0:
			return d.owner.launch(kernels.Fill(v.address(), v.n, 0))
		case len(t) <= kernels.MaxTerms:
			return d.owner.launch(kernels.Combine(v.address(), v.n, t...))
		}
		return d.owner.withLists(func(l []kernels.List) error { return d.owner.launch(kernels.CombineList(v.address(), v.n, l[0])) }, t)
	})
}

// terms are the terms as kernels take them, and what must not be given back before they are sent. All vectors have n elements.
func (d *Device) terms(op string, terms []device.Term, n int) ([]kernels.Term, []*Vector) {
	t, alive := make([]kernels.Term, len(terms)), make([]*Vector, len(terms))
	for k := range terms {
		alive[k] = d.vector(op, terms[k].V)
		checkLen(op, "a term", alive[k].n, n)
		t[k] = kernels.Term{A: float32(terms[k].A), V: alive[k].address()}
	}
	return t, alive
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
	err = o.api.Check(o.api.MemcpyHtoD(room.at, host.pointer(), uintptr(size), o.stream), "cuMemcpyHtoDAsync", "copying %d terms to the GPU", len(terms[0]))
	if err == nil {
		err = use(lists)
	}
	if !o.mark(func() { o.pinned.give(host) }) {
		o.pinned.give(host)
	}
	return err
}

// fillLists writes lists to b, the copy of what will lie at an address: the addresses of the vectors, then their coefficients.
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
	o := d.owner
	o.send(func() error {
		defer keep(to, from, x)
		if x == nil {
			return o.api.Check(o.api.MemcpyDtoD(to.block.at, from.block.at, to.bytes(), o.stream), "cuMemcpyDtoDAsync", "copying a vector of %d numbers", to.n)
		}
		return o.launch(kernels.Gather(to.address(), from.address(), x.address(), x.n))
	})
}

// AddDiff computes V[idx[j]] += A·(own[j] - other[j]) for each term. It panics as device.Device says.
func (d *Device) AddDiff(own, other device.Vector, idx device.Index, to ...device.Term) {
	p, q, x := d.vector("AddDiff", own), d.vector("AddDiff", other), d.index("AddDiff", idx)
	checkLen("AddDiff", "other", q.n, p.n)
	if x != nil {
		checkLen("AddDiff", "own", p.n, x.n)
	}
	t, alive := make([]kernels.Term, len(to)), make([]*Vector, len(to))
	for k := range to {
		v := d.vector("AddDiff", to[k].V)
		checkLen("AddDiff", "own", p.n, x.count("AddDiff", v.n))
		alive[k], t[k] = v, kernels.Term{A: float32(to[k].A), V: v.address()}
	}
	if len(t) == 0 {
		return
	}
	o := d.owner
	o.send(func() error {
		defer keep(p, q, x, alive)
		if len(t) <= 2 {
			return o.launch(kernels.AddDiff(p.address(), q.address(), x.address(), p.n, t...))
		}
		return o.withLists(func(l []kernels.List) error {
			return o.launch(kernels.AddDiffList(p.address(), q.address(), x.address(), p.n, l[0]))
		}, t)
	})
}

// AddDiffs computes V += A·S for each term of to, with S = start + Σ Aₖ·(own - Vₖ) over others. It panics if the lengths differ.
func (d *Device) AddDiffs(start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
	p := d.vector("AddDiffs", own)
	from, s := kernels.Term{}, (*Vector)(nil)
	if start.V != nil {
		s = d.vector("AddDiffs", start.V)
		checkLen("AddDiffs", "start", s.n, p.n)
		from = kernels.Term{A: float32(start.A), V: s.address()}
	}
	a, others1 := d.terms("AddDiffs", others, p.n)
	t, to1 := d.terms("AddDiffs", to, p.n)
	if len(t) == 0 {
		return
	}
	o := d.owner
	o.send(func() error {
		defer keep(p, s, others1, to1)
		if len(a) <= kernels.MaxTerms && len(t) <= 2 {
			return o.launch(kernels.AddDiffs(p.n, from, p.address(), a, t...))
		}
		return o.withLists(func(l []kernels.List) error {
			return o.launch(kernels.AddDiffsList(p.n, from, p.address(), l[0], l[1]))
		}, a, t)
	})
}

// CombineDiffs is Combine(dst.V, base...) and then AddDiffs(start, own, others, dst, to...). It panics if the lengths differ.
func (d *Device) CombineDiffs(dst device.Term, base []device.Term, start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
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

// ScatterAdd computes dst[Idx[j]] += A·V[j] for one part after the other. It panics as device.Device says.
func (d *Device) ScatterAdd(dst device.Vector, parts ...device.Part) {
	v := d.vector("ScatterAdd", dst)
	calls, alive := make([]kernels.Call, len(parts)), make([]any, 0, 2*len(parts))
	for i, p := range parts {
		from, x := d.vector("ScatterAdd", p.V), d.index("ScatterAdd", p.Idx)
		checkLen("ScatterAdd", "a part", from.n, x.count("ScatterAdd", v.n))
		calls[i] = kernels.ScatterAdd(v.address(), kernels.Term{A: float32(p.A), V: from.address()}, x.address(), from.n)
		alive = append(alive, from, x)
	}
	d.owner.send(func() error {
		defer keep(v, alive)
		return d.owner.launch(calls...)
	})
}

// Dot returns Σ a[k]·b[k], with the bits of the CPU's. It panics if the lengths differ. After a failure it is not a number.
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
	o.sendThen(func() error {
		defer keep(x, y)
		room, err := o.alloc(8 * (1 + kernels.DotParts(x.n)))
		if err != nil {
			return err
		}
		defer o.pool.give(room)
		calls := kernels.Dot(room.address(), 0, x.address(), y.address(), room.address()+8, x.n, 1)
		if err := o.launch(calls[:]...); err != nil {
			return err
		}
		return o.api.Check(o.api.MemcpyDtoH(host.pointer(), driver.Pointer(room.at), 8, o.stream), "cuMemcpyDtoHAsync", "copying a scalar product from the GPU")
	}, func() { close(arrived) })
	<-arrived
	if o.err() == nil {
		sum = math.Float64frombits(binary.LittleEndian.Uint64(host.bytes))
	}
	o.pinned.give(host)
	return sum
}
