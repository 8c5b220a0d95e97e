package cuda

import (
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// op is a piece of work for the GPU. Work waits in a window, in waves, which are numbered for good.
// What touches nothing that waiting work touches belongs to the first wave that was not sent, what
// waits for that to the second, and so on. Within a wave the order does not matter, so that equal
// operations of several agents go to the GPU in one launch: see joint. When the owner has nothing
// else to do and the GPU is not far behind, the waves of one iteration are sent, and no more: what
// agents ahead of others have asked for beyond it waits for company. Bits depend neither on waves
// nor on company.
type op struct {
	touches []touch
	call    kernels.Call // what it does, where that is one kernel
	// else hands it to the GPU; nil where joint does. Where there is a call too, that is for a
	// march
	send   func() error
	joint  joint  // nil: it goes alone
	then   func() // once the GPU is done with it, and after a failure too; nil: nobody waits
	copies bool   // it goes to the stream of copies

	few [5]touch // memory for touches
}

// joint is how ops are sent together.
type joint interface {
	// sendAll hands ops that join each other to the GPU, in any order.
	sendAll(o *owner, ops []*op) error
	// joins tells whether an op goes together with this one. It is symmetric and transitive.
	joins(other joint) bool
	// stride is how many waves lie between those in which such ops go. Agents that need different
	// numbers of waves for an iteration so meet again in the next one.
	stride() int
}

// hazard is what something in the memory of the GPU keeps of the window: the last waves that wrote
// and read it, 0 for none. It is the owner's.
type hazard struct{ written, read uint64 }

// touch is an operand of an op.
type touch struct {
	on    *hazard
	write bool
}

func reading(on *hazard) touch { return touch{on: on} }
func writing(on *hazard) touch { return touch{on: on, write: true} }

// window is work that waits.
type window struct {
	sent  uint64  // waves so far
	waves []*wave // the next ones
	ops   int     // in them
	spare []*wave // empty, with the memory of what they had

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

// mostAhead is how many flights of waves the GPU has before it: one that it does, and one that is
// next.
const mostAhead = 2

// plan puts an op in its wave.
func (w *window) plan(p *op) {
	at := w.sent + 1
	for _, t := range p.touches {
		at = max(at, t.on.written+1)
		if t.write {
			at = max(at, t.on.read+1)
		}
	}
	if p.joint != nil {
		n := uint64(p.joint.stride())
		at = (at+n-2)/n*n + 1
	}
	for _, t := range p.touches {
		if t.write {
			t.on.written = max(t.on.written, at)
		} else {
			t.on.read = max(t.on.read, at)
		}
	}
	for w.sent+uint64(len(w.waves)) < at {
		w.waves = append(w.waves, w.empty())
	}
	w.waves[at-w.sent-1].add(p)
	w.ops++
}

// empty is a wave without ops.
func (w *window) empty() *wave {
	n := len(w.spare)
	if n == 0 {
		return &wave{}
	}
	v := w.spare[n-1]
	w.spare = w.spare[:n-1]
	return v
}

// flight is how many waves there are up to the end of an iteration.
func (w *window) flight() int {
	return min(len(w.waves), int(iterationWaves-w.sent%iterationWaves))
}

// drop takes the first waves away, which were sent.
func (w *window) drop(n int) {
	w.spare = append(w.spare, w.waves[:n]...)
	w.waves = w.waves[:copy(w.waves, w.waves[n:])]
	w.sent += uint64(n)
}

// iterationWaves is how many waves an iteration of an agent takes at most, of most algorithms.
const iterationWaves = 8

// size is the number of ops.
func (v *wave) size() int {
	n := len(v.alone)
	for i := range v.joints {
		n += len(v.joints[i].ops)
	}
	return n
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

// ready tells whether waves should be sent, given that no more tasks are there.
func (o *owner) ready() bool { return o.window.ops > 0 && len(o.pending) < mostAhead }

// flush sends the window.
func (o *owner) flush() {
	for o.window.ops > 0 {
		o.advance()
	}
}

// advance sends the waves up to the end of an iteration. What waits for them is done when the GPU
// has come so far.
func (o *owner) advance() {
	w := &o.window
	n := w.flight()
	for _, v := range w.waves[:n] {
		w.ops -= v.size()
		o.sendWave(v)
	}
	o.fail(o.march.halt())
	w.drop(n)
	o.doAfter(o.copies, &o.arriving, &w.copied)
	o.doAfter(o.stream, &o.pending, &w.computed)
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
