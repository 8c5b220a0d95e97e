package cuda

import (
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// op is a piece of work for the GPU. Work waits in a window until the owner has nothing else to do and the GPU is not far behind; then it is sent
// in waves. What touches nothing that earlier work of the window touches belongs to the first wave, what waits for that to the
// second, and so on. Within a wave the order does not matter, so that equal operations of several agents go to the GPU in one launch:
// see joint. Bits depend neither on waves nor on company.
type op struct {
	touches []touch
	call    kernels.Call // what it does, where that is one kernel
	send    func() error // else hands it to the GPU; nil where joint does. Where there is a call too, that is for a march
	joint   joint        // nil: it goes alone
	then    func()       // once the GPU is done with it, and after a failure too; nil: nobody waits
	copies  bool         // it goes to the stream of copies

	few [5]touch // memory for touches
}

// joint is how ops are sent together.
type joint interface {
	// sendAll hands ops that join each other to the GPU, in any order.
	sendAll(o *owner, ops []*op) error
	// joins tells whether an op goes together with this one. It is symmetric and transitive.
	joins(other joint) bool
	// stride is how many waves lie between those in which such ops go. Agents that need different numbers of waves for an iteration so meet again
	// in the next one.
	stride() int
}

// hazard is what something in the memory of the GPU keeps of the window: the last waves that wrote and read it. It is the owner's.
type hazard struct {
	window        uint64
	written, read int // waves, from 1 on; 0: none
}

// touch is an operand of an op.
type touch struct {
	on    *hazard
	write bool
}

func reading(on *hazard) touch { return touch{on: on} }
func writing(on *hazard) touch { return touch{on: on, write: true} }

// window is work that waits.
type window struct {
	number uint64
	waves  []wave
	ops    int
	last   int // ops of the window before

	computed, copied []func() // what is to be done once streams have come to where they are
}

// wave is ops that do not depend on each other.
type wave struct {
	alone  []*op
	joints []company
}

// company is ops of a wave that go together.
type company struct{ ops []*op }

// mostOps is how many ops wait at most.
const mostOps = 1024

// mostWindows is how many windows the GPU has before it: one that it does, and one that is next.
const mostWindows = 2

// plan puts an op in its wave.
func (w *window) plan(p *op) {
	at := 1
	for _, t := range p.touches {
		h := t.on
		if h.window != w.number {
			*h = hazard{window: w.number}
		}
		at = max(at, h.written+1)
		if t.write {
			at = max(at, h.read+1)
		}
	}
	if p.joint != nil {
		n := p.joint.stride()
		at = (at+n-2)/n*n + 1
	}
	for _, t := range p.touches {
		if t.write {
			t.on.written = max(t.on.written, at)
		} else {
			t.on.read = max(t.on.read, at)
		}
	}
	for len(w.waves) < at {
		if cap(w.waves) > len(w.waves) {
			w.waves = w.waves[:len(w.waves)+1] // with the room of an earlier window
		} else {
			w.waves = append(w.waves, wave{})
		}
	}
	w.waves[at-1].add(p)
	w.ops++
}

func (v *wave) add(p *op) {
	if p.joint == nil {
		v.alone = append(v.alone, p)
		return
	}
	for i := range v.joints {
		if c := &v.joints[i]; c.ops[0].joint.joins(p.joint) {
			c.ops = append(c.ops, p)
			return
		}
	}
	n := len(v.joints)
	if n == cap(v.joints) {
		v.joints = append(v.joints, company{})
	}
	v.joints = v.joints[:n+1]
	v.joints[n].ops = append(v.joints[n].ops[:0], p) // in the memory of an earlier company
}

// submitOp hands an op to the owner.
func (o *owner) submitOp(p *op) {
	if !o.submit(item{op: p}) && p.then != nil {
		p.then()
	}
}

// sendNow has an op sent, whatever else waits, and returns its error. It does not wait for the GPU.
func (o *owner) sendNow(task func() error, touches ...touch) error {
	answer := make(chan error, 1)
	if !o.submit(item{task: func() {
		var failed error
		o.window.plan(&op{touches: touches, send: func() error { failed = task(); return failed }})
		o.flush()
		if failed == nil {
			failed = o.err()
		}
		answer <- failed
	}}) {
		return errClosed
	}
	return <-answer
}

// ready tells whether a window should be sent, given that no more tasks are there. While the GPU is busy, one that is much smaller than the last
// waits for company: else large windows and small ones would take turns, and a small one takes the GPU nearly as long.
func (o *owner) ready() bool {
	switch {
	case o.window.ops == 0 || len(o.pending) >= mostWindows:
		return false
	case len(o.pending) == 0:
		return true
	}
	return 2*o.window.ops >= o.window.last
}

// flush sends the window. What waits for it is done when the GPU has come so far.
func (o *owner) flush() {
	if o.window.ops == 0 {
		return
	}
	for i := range o.window.waves {
		o.sendWave(&o.window.waves[i])
	}
	o.fail(o.march.halt())
	o.window.waves, o.window.ops, o.window.last = o.window.waves[:0], 0, o.window.ops
	o.window.number++
	o.doAfter(o.copies, &o.arriving, &o.window.copied)
	o.doAfter(o.stream, &o.pending, &o.window.computed)
}

// doAfter has all of a list done once a stream has come to where it is, and empties the list.
func (o *owner) doAfter(s driver.Stream, pending *[]pending, then *[]func()) {
	all := *then
	if len(all) == 0 {
		return
	}
	*then = nil
	if n := len(o.lists); n > 0 {
		*then, o.lists = o.lists[n-1], o.lists[:n-1]
	}
	if o.err() != nil || !o.markAll(s, pending, all) {
		o.finish(all)
	}
}

// finish does all of a list, and keeps its memory.
func (o *owner) finish(all []func()) {
	for i, then := range all {
		then()
		all[i] = nil
	}
	o.lists = append(o.lists, all[:0])
}

// sendWave sends the ops of a wave and empties it.
func (o *owner) sendWave(v *wave) {
	o.march.order(v.alone)
	for i, p := range v.alone {
		if o.err() == nil {
			o.fail(o.sendAlone(p))
		}
		o.window.note(p)
		v.alone[i] = nil
	}
	for i := range v.joints {
		ops := v.joints[i].ops
		if o.err() == nil {
			o.fail(ops[0].joint.sendAll(o, ops))
		}
		for k, p := range ops {
			o.window.note(p)
			ops[k] = nil
		}
	}
	v.alone, v.joints = v.alone[:0], v.joints[:0]
	o.march.next()
}

func (o *owner) sendAlone(p *op) error {
	switch {
	case o.march.takes(p.call):
		return o.march.step(p.call)
	case !p.copies:
		if err := o.march.halt(); err != nil {
			return err
		}
	}
	if p.send != nil {
		return p.send()
	}
	return o.launch(p.call)
}

func (w *window) note(p *op) {
	switch {
	case p.then == nil:
	case p.copies:
		w.copied = append(w.copied, p.then)
	default:
		w.computed = append(w.computed, p.then)
	}
}
