package cuda

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"
	"weak"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// mostTogether is how many agents compute in one launch.
const mostTogether = 16

// A gradient goes together with those of other agents where it has at most so many numbers in its
// arena and operations: larger ones fill a GPU by themselves. This is a matter of the code alone,
// since the kernels of a fleet have other bits than NVIDIA's libraries.
const (
	fleetArena = 2 << 20
	fleetFLOPs = 1e9
)

// fleets are those of a device, by their code.
type fleets struct {
	mu  sync.Mutex
	all map[*device.Code]weak.Pointer[fleet]
}

// fleet computes the gradients of a small network for all agents that ask for one at the same time,
// in as many launches as one of them would need: whoever comes while the GPU is busy goes with the
// next. Bits do not depend on the company.
type fleet struct {
	d       *Device
	code    *device.Code
	results resultRange
	apart   int // numbers from one arena to the next
	shape   roomShape
	own     *fleetMemory
	short   *kernels.FleetShort // how it computes in 16 bits; nil: it does not
	coded   bool                // it takes examples as bytes
	idle    sync.Pool           // of *passage: what is over
}

// fleetMemory is what of the device belongs to a fleet. It is the owner's.
type fleetMemory struct {
	o                             *owner
	room, arena, results, scratch block
	graphs                        map[formation]driver.GraphExec
	berths                        []*berth // of which nobody waits for
	marches                       map[formation]*route
	march                         uint64 // the last in which the fleet was
	free                          int    // the phase from which on the arena is free in it
}

// berth is pinned memory of a launch: what it is told and what it finds. They are used again when
// the GPU is done.
type berth struct {
	room, results *buffer
	left          int // agents whose results are still to be taken
}

// formation is what a captured launch depends on.
type formation struct {
	agents       int
	store        kernels.Address // 0: agents have examples as numbers
	scale, shift uint32          // bits
}

// of returns the fleet of a code, or nil where agents do not run it together.
func (f *fleets) of(d *Device, code *device.Code) *fleet {
	short, ok := d.sails(code)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if there := f.all[code].Value(); there != nil {
		return there
	}
	for c, old := range f.all {
		if old.Value() == nil {
			delete(f.all, c)
		}
	}
	made := &fleet{d: d, code: code, results: rangeOf(code.Results), apart: alignedTo(4*code.Arena) / 4,
		shape: roomShape{code.Batch, mostTogether}, short: short, coded: lowers(code, &kernels.Coded{}),
		own: &fleetMemory{o: d.owner, graphs: map[formation]driver.GraphExec{}, marches: map[formation]*route{}}}
	runtime.AddCleanup(made, (*fleetMemory).drop, made.own)
	if f.all == nil {
		f.all = map[*device.Code]weak.Pointer[fleet]{}
	}
	f.all[code] = weak.Make(made)
	return made
}

// sails tells whether agents compute code together, and how where that is in 16 bits.
func (d *Device) sails(code *device.Code) (short *kernels.FleetShort, ok bool) {
	if d.alone || !code.Gradient || code.Buffers > 0 || code.Batch == 0 || code.Features == 0 ||
		code.Arena > fleetArena || code.FLOPs > fleetFLOPs {
		return nil, false
	}
	if (roomShape{code.Batch, mostTogether}).bytes() > chunk || !lowers(code, nil) {
		return nil, false
	}
	return d.shortOf(code)
}

// lowers tells whether a fleet has kernels for code, with examples as numbers or as bytes.
func lowers(code *device.Code, bytes *kernels.Coded) bool {
	const some = 256 // in place of addresses
	_, err := kernels.Fleet{Agents: 1, Params: some, Grads: some, Arena: some, Arenas: some, Inputs: some, Bytes: bytes,
		Labels: some, Scratch: some, Bad: some}.Lower(code)
	return err == nil
}

// drop gives the memory back. It is for the collector.
func (m *fleetMemory) drop() {
	m.o.discardGraphs(slices.Collect(maps.Values(m.graphs))...)
	for _, b := range []block{m.room, m.arena, m.results, m.scratch} {
		if b.size > 0 {
			m.o.discard(b)
		}
	}
	for _, b := range m.berths {
		m.o.pinned.give(b.room)
		m.o.pinned.give(b.results)
	}
}

// roomShape says where things lie in the room that goes to the GPU before a launch: five lists of
// addresses, the rows and labels of all batches, and a counter of bad labels.
type roomShape struct{ batch, agents int }

func (s roomShape) params() int  { return 0 }
func (s roomShape) grads() int   { return 8 * s.agents }
func (s roomShape) inputs() int  { return 16 * s.agents }
func (s roomShape) arenas() int  { return 24 * s.agents }
func (s roomShape) scalers() int { return 32 * s.agents }
func (s roomShape) rows() int    { return 40 * s.agents }
func (s roomShape) labels() int  { return s.rows() + 4*s.agents*s.batch }
func (s roomShape) counter() int { return s.labels() + 4*s.agents*s.batch }
func (s roomShape) bytes() int   { return s.counter() + 4 }

// found is the bytes that a launch of so many agents brings back: the states of their loss scales,
// if there are any, and their results.
func (f *fleet) found(agents int) int { return f.states() + agents*f.results.bytes() }

// states is the bytes in front of the results that are for the states of loss scales.
func (f *fleet) states() int {
	if f.scaling() == nil {
		return 0
	}
	return mostTogether * kernels.ScalerBytes
}

func (f *fleet) scaling() *kernels.Scaling {
	if f.short == nil {
		return nil
	}
	return f.short.Scaling
}

// passage is an agent's part of a launch.
type passage struct {
	op
	f            *fleet
	params, grad kernels.Address
	scale        *lossScale // of the gradient; nil: none
	store        *store     // nil: the batch is in a slot
	by, shift    float32    // of its bytes
	rows         []int32
	labels       []float32

	program  *Program // that began it, and whose slot it is
	slot     *slot
	channels int
	input    kernels.Address

	berth *berth // of the launch that it went with
	place int    // in it
	found []float32
	out   []float64
	err   error

	done chan struct{} // has room for one
	over func()        // what is to be done after it, made once
	wait func() error
}

// joins tells whether passages go in one launch.
func (p *passage) joins(other joint) bool {
	x, ok := other.(*passage)
	return ok && x.f == p.f && x.store == p.store && math.Float32bits(x.by) == math.Float32bits(p.by) &&
		math.Float32bits(x.shift) == math.Float32bits(p.shift)
}

func (p *passage) stride() int { return iterationWaves }

// join is a run in company.
func (p *Program) join(v vectors, b device.Batch, out []float64) (wait func() error, err error) {
	r := p.fleet.passage()
	r.program, r.out = p, out
	r.params, r.grad, r.scale = v.params.address(), v.grad.address(), v.scale
	r.touches = append(r.few[:0], reading(&v.params.hazard), writing(&v.grad.hazard))
	if v.scale != nil {
		r.touches = append(r.touches, writing(&v.scale.hazard))
	}
	r.labels = r.labels[:len(b.Y)]
	for i, y := range b.Y {
		r.labels[i] = float32(y)
	}
	if len(b.Scale) == 1 && p.fleet.coded {
		r.store = p.device.storeOf(b)
	}
	if r.store != nil {
		r.by, r.shift, r.rows = b.Scale[0], b.Shift[0], append(r.rows, b.Rows...)
		r.touches = append(r.touches, reading(&r.store.hazard))
	} else if err := p.board(r, b); err != nil {
		return nil, err
	}
	r.joint, r.then = r, r.over
	p.device.owner.submitOp(&r.op)
	return r.wait, nil
}

// board takes a slot for the batch of a passage.
func (p *Program) board(r *passage, b device.Batch) (err error) {
	if r.slot, err = p.takeSlot(b); err != nil {
		return err
	}
	r.channels = len(b.Scale)
	p.fill(r.slot, b, 0)
	r.touches = append(r.touches, reading(&r.slot.hazard))
	if r.channels > 0 {
		r.touches = append(r.touches, writing(&p.own.hazard))
	}
	return nil
}

// passage returns one with nothing in it, in memory of an earlier one.
func (f *fleet) passage() *passage {
	r, ok := f.idle.Get().(*passage)
	if !ok {
		r = &passage{found: make([]float32, f.results.to-f.results.from), labels: make([]float32, 0, f.code.Batch),
			rows: make([]int32, 0, f.code.Batch),
			done: make(chan struct{}, 1)}
		r.over, r.wait = r.end, r.await
	}
	*r = passage{f: f, found: r.found, labels: r.labels[:0], rows: r.rows[:0], done: r.done, over: r.over, wait: r.wait}
	return r
}

// await waits for the end and hands the results out.
func (r *passage) await() error {
	<-r.done
	p, err := r.program, r.err
	if err == nil {
		r.f.results.collect(r.found, p.code.Results, r.out)
	} else {
		err = p.failed(err)
	}
	r.few, r.touches, r.scale = [len(r.few)]touch{}, nil, nil // it holds nobody's vectors while it is idle
	r.f.idle.Put(r)
	return err
}

// end takes the results. It is the owner's.
func (r *passage) end() {
	o := r.f.own.o
	if r.slot != nil {
		r.slot.busy.Store(false)
	}
	if b := r.berth; b != nil {
		if n := len(r.found); n > 0 {
			copy(r.found, b.results.float32s(r.f.found(mostTogether) / 4)[r.f.states()/4+r.place*n:])
		}
		if r.scale != nil && r.err == nil && o.err() == nil {
			r.scale.arrived(b.results.bytes[r.place*kernels.ScalerBytes:])
		}
		if b.left--; b.left == 0 {
			r.f.own.berths = append(r.f.own.berths, b)
		}
	}
	if r.err == nil {
		r.err = o.err()
	}
	r.done <- struct{}{}
}

// sendAll sends passages, in as few launches as there are.
func (r *passage) sendAll(o *owner, ops []*op) error {
	for len(ops) > 0 {
		part := ops[:min(len(ops), mostTogether)]
		ops = ops[len(part):]
		var all [mostTogether]*passage
		crew := all[:len(part)]
		for i, p := range part {
			crew[i] = p.joint.(*passage)
		}
		err := r.f.sail(o, crew)
		if err != nil && driver.IsOutOfMemory(err) { // then nothing was sent
			for _, p := range crew {
				p.err = err
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// sail sends one launch, or has the crew march.
func (f *fleet) sail(o *owner, crew []*passage) error {
	if marched, err := f.march(o, crew); marched || err != nil {
		return err
	}
	if err := o.march.halt(); err != nil {
		return err
	}
	if err := f.makeRoom(o); err != nil {
		return err
	}
	b, err := f.takeBerth(o)
	if err != nil {
		return err
	}
	for _, p := range crew {
		if p.slot != nil {
			if p.input, err = p.program.arrive(p.slot, p.channels, 0); err != nil {
				return err
			}
		}
	}
	f.describe(b.room.bytes, f.shape, crew)
	if r := o.api.MemcpyHtoD(f.own.room.at, b.room.pointer(), uintptr(f.shape.bytes()), o.stream); r != driver.Success {
		return o.api.Check(r, "cuMemcpyHtoDAsync", "telling the GPU of %d batches", len(crew))
	}
	if err := f.launch(o, f.formation(crew)); err != nil {
		return err
	}
	if n := f.found(len(crew)); n > 0 {
		if err := o.api.Check(o.api.MemcpyDtoH(b.results.pointer(), f.own.results.at, uintptr(n), o.stream),
			"cuMemcpyDtoHAsync", "copying results of %d agents from the GPU", len(crew)); err != nil {
			return err
		}
	}
	b.left = len(crew)
	for i, p := range crew {
		p.berth, p.place = b, i
		if p.slot != nil {
			if err := o.record(p.slot.free, o.stream); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fleet) formation(crew []*passage) formation {
	k := formation{agents: len(crew)}
	if p := crew[0]; p.store != nil {
		k.store, k.scale, k.shift = p.store.block.address(), math.Float32bits(p.by), math.Float32bits(p.shift)
	}
	return k
}

// wanted is the memory of a fleet.
func (f *fleet) wanted() []want {
	m := f.own
	return []want{{&m.room, f.shape.bytes()}, {&m.arena, mostTogether * 4 * f.apart},
		{&m.results, f.found(mostTogether)},
		{&m.scratch, 8 * kernels.FleetScratch(f.code, mostTogether)}}
}

// lacksRoom tells whether some is not there: the scratch is taken last.
func (f *fleet) lacksRoom() bool { return f.own.scratch.size == 0 }

// makeRoom takes the memory of a fleet when it first sails.
func (f *fleet) makeRoom(o *owner) (err error) {
	for _, w := range f.wanted() {
		if w.lacks() {
			if *w.block, err = o.alloc(max(w.bytes, 4)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fleet) takeBerth(o *owner) (*berth, error) {
	if n := len(f.own.berths); n > 0 {
		b := f.own.berths[n-1]
		f.own.berths = f.own.berths[:n-1]
		return b, nil
	}
	room, err := o.newBuffer(classOfBuffer(f.shape.bytes()))
	if err != nil {
		return nil, err
	}
	results, err := o.newBuffer(classOfBuffer(max(4, f.found(mostTogether))))
	if err != nil {
		o.pinned.give(room)
		return nil, err
	}
	clear(results.bytes)
	return &berth{room: room, results: results}, nil
}

// describe writes to pinned memory what the kernels look up.
func (f *fleet) describe(room []byte, s roomShape, crew []*passage) {
	list := func(at int) []kernels.Address {
		return unsafe.Slice((*kernels.Address)(unsafe.Pointer(&room[at])), s.agents)
	}
	params, grads, inputs, arenas := list(s.params()), list(s.grads()), list(s.inputs()), list(s.arenas())
	scalers := list(s.scalers())
	rows := unsafe.Slice((*int32)(unsafe.Pointer(&room[s.rows()])), s.agents*s.batch)
	labels := unsafe.Slice((*float32)(unsafe.Pointer(&room[s.labels()])), s.agents*s.batch)
	for i, p := range crew {
		params[i], grads[i], inputs[i] = p.params, p.grad, p.input
		arenas[i] = f.own.arena.address() + kernels.Address(4*f.apart*i)
		if p.scale != nil {
			scalers[i] = p.scale.block.address()
		}
		copy(rows[i*s.batch:], p.rows)
		copy(labels[i*s.batch:], p.labels)
	}
	*(*uint32)(unsafe.Pointer(&room[s.counter()])) = kernels.NoBadRow
}

// launch sends the graph of a formation, or makes it.
func (f *fleet) launch(o *owner, k formation) error {
	exec, ok := f.own.graphs[k]
	if !ok {
		if len(f.own.graphs) >= mostGraphs {
			if err := dropGraphs(o, f.own.graphs); err != nil {
				return err
			}
		}
		var err error
		if exec, err = o.capture(f.code.Name, func() error { return f.send(o, k) }); err != nil {
			return err
		}
		f.own.graphs[k] = exec
		o.execs[exec] = true
	}
	if r := o.api.GraphLaunch(exec, o.stream); r != driver.Success {
		return o.api.Check(r, "cuGraphLaunch", "launching the graph of %s for %d agents", f.code.Name, k.agents)
	}
	return nil
}

// crewed is what the kernels of a formation work on, with a room of such a shape.
func (f *fleet) crewed(k formation, room kernels.Address, s roomShape) kernels.Fleet {
	m := f.own
	at := func(offset int) kernels.Address { return room + kernels.Address(offset) }
	fleet := kernels.Fleet{Agents: k.agents, Params: at(s.params()), Grads: at(s.grads()), Arena: m.arena.address(),
		Arenas: at(s.arenas()), Apart: f.apart,
		Labels: at(s.labels()), Scratch: m.scratch.address(), Bad: at(
			s.counter()), TF32: f.d.precision == TF32, Short: f.shortAt(at(s.scalers()), m.results.address())}
	if k.store != 0 {
		fleet.Bytes = &kernels.Coded{Bytes: k.store, Rows: at(s.rows()), Scale: math.Float32frombits(k.scale),
			Shift: math.Float32frombits(k.shift)}
	} else {
		fleet.Inputs = at(s.inputs())
	}
	return fleet
}

// send sends the kernels of a launch.
func (f *fleet) send(o *owner, k formation) error {
	calls, err := f.crewed(k, f.own.room.address(), f.shape).Lower(f.code)
	if err != nil {
		return err
	}
	if err := o.launch(calls...); err != nil || f.results.bytes() == 0 {
		return err
	}
	return o.launch(f.collect(f.own.results.address()+kernels.Address(f.states()), k.agents))
}

// collect copies the results of all agents from their arenas.
func (f *fleet) collect(to kernels.Address, agents int) kernels.Call {
	return kernels.Collect(to, f.own.arena.address()+kernels.Address(4*f.results.from), f.apart, f.results.bytes()/4,
		agents)
}
