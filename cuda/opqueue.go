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
	accesses []access
	call     kernels.Call // what it does, where that is one kernel
	// else hands it to the GPU; nil where joint does. Where there is a call too, that is for a
	// march
	send         func() error
	batch        batchable // nil: it goes alone
	then         func()    // once the GPU is done with it, and after a failure too; nil: nobody waits
	onCopyStream bool      // it goes to the stream of copies

	accessArray [5]access // memory for touches
}

// joint is how ops are sent together.
type batchable interface {
	// sendAll hands ops that join each other to the GPU, in any order.
	sendBatch(ex *executor, ops []*op) error
	// joins tells whether an op goes together with this one. It is symmetric and transitive.
	batchesWith(other batchable) bool
	// stride is how many waves lie between those in which such ops go. Agents that need different
	// numbers of waves for an iteration so meet again in the next one.
	levelStride() int
}

// hazard is what something in the memory of the GPU keeps of the window: the last waves that wrote
// and read it, 0 for none. It is the owner's.
type dependency struct{ written, read uint64 }

// touch is an operand of an op.
type access struct {
	on    *dependency
	write bool
}

func reads(on *dependency) access  { return access{on: on} }
func writes(on *dependency) access { return access{on: on, write: true} }

// window is work that waits.
type opQueue struct {
	sent       uint64   // waves so far
	levels     []*level // the next ones
	count      int      // in them
	freeLevels []*level // empty, with the memory of what they had

	computed, copied []func() // what is to be done once streams have come to where they are
}

// wave is ops that do not depend on each other.
type level struct {
	single  []*op
	batches []opBatch
}

// company is ops of a wave that go together.
type opBatch struct{ ops []*op }

// mostOps is how many ops wait at most.
const maxOps = 1024

// mostAhead is how many flights of waves the GPU has before it: one that it does, and one that is
// next.
const maxInFlight = 2

// plan puts an op in its wave.
func (q *opQueue) add(p *op) {
	at := q.sent + 1
	for _, t := range p.accesses {
		at = max(at, t.on.written+1)
		if t.write {
			at = max(at, t.on.read+1)
		}
	}
	if p.batch != nil {
		n := uint64(p.batch.levelStride())
		at = (at+n-2)/n*n + 1
	}
	for _, t := range p.accesses {
		if t.write {
			t.on.written = max(t.on.written, at)
		} else {
			t.on.read = max(t.on.read, at)
		}
	}
	for q.sent+uint64(len(q.levels)) < at {
		q.levels = append(q.levels, q.newLevel())
	}
	q.levels[at-q.sent-1].add(p)
	q.count++
}

// empty is a wave without ops.
func (q *opQueue) newLevel() *level {
	n := len(q.freeLevels)
	if n == 0 {
		return &level{}
	}
	l := q.freeLevels[n-1]
	q.freeLevels = q.freeLevels[:n-1]
	return l
}

// flight is how many waves there are up to the end of an iteration.
func (q *opQueue) iteration() int {
	return min(len(q.levels), int(levelsPerIteration-q.sent%levelsPerIteration))
}

// drop takes the first waves away, which were sent.
func (q *opQueue) removeSent(n int) {
	q.freeLevels = append(q.freeLevels, q.levels[:n]...)
	q.levels = q.levels[:copy(q.levels, q.levels[n:])]
	q.sent += uint64(n)
}

// iterationWaves is how many waves an iteration of an agent takes at most, of most algorithms.
const levelsPerIteration = 8

// size is the number of ops.
func (l *level) count() int {
	n := len(l.single)
	for i := range l.batches {
		n += len(l.batches[i].ops)
	}
	return n
}

func (l *level) add(p *op) {
	if p.batch == nil {
		l.single = append(l.single, p)
		return
	}
	for i := range l.batches {
		if c := &l.batches[i]; c.ops[0].batch.batchesWith(p.batch) {
			c.ops = append(c.ops, p)
			return
		}
	}
	n := len(l.batches)
	if n == cap(l.batches) {
		l.batches = append(l.batches, opBatch{})
	}
	l.batches = l.batches[:n+1]
	l.batches[n].ops = append(l.batches[n].ops[:0], p) // in the memory of an earlier company
}

// submitOp hands an op to the owner.
func (ex *executor) enqueueOp(p *op) {
	if !ex.post(item{op: p}) && p.then != nil {
		p.then()
	}
}

// sendNow has an op sent, whatever else waits, and returns its error. It does not wait for the GPU.
func (ex *executor) runOp(task func() error, accesses ...access) error {
	answer := make(chan error, 1)
	if !ex.post(item{task: func() {
		var failed error
		ex.ops.add(&op{accesses: accesses, send: func() error { failed = task(); return failed }})
		ex.flush()
		if failed == nil {
			failed = ex.err()
		}
		answer <- failed
	}}) {
		return errClosed
	}
	return <-answer
}

// ready tells whether waves should be sent, given that no more tasks are there.
func (ex *executor) shouldSend() bool { return ex.ops.count > 0 && len(ex.onStream) < maxInFlight }

// flush sends the window.
func (ex *executor) flush() {
	for ex.ops.count > 0 {
		ex.sendIteration()
	}
}

// advance sends the waves up to the end of an iteration. What waits for them is done when the GPU
// has come so far.
func (ex *executor) sendIteration() {
	q := &ex.ops
	n := q.iteration()
	for _, l := range q.levels[:n] {
		q.count -= l.count()
		ex.sendLevel(l)
	}
	ex.fail(ex.mega.flush())
	q.removeSent(n)
	ex.callAfter(ex.copyStream, &ex.onCopyStream, &q.copied)
	ex.callAfter(ex.stream, &ex.onStream, &q.computed)
}

// doAfter has all of a list done once a stream has come to where it is, and empties the list.
func (ex *executor) callAfter(s driver.Stream, pending *[]completion, then *[]func()) {
	all := *then
	if len(all) == 0 {
		return
	}
	*then = nil
	if n := len(ex.freeLists); n > 0 {
		*then, ex.freeLists = ex.freeLists[n-1], ex.freeLists[:n-1]
	}
	if ex.err() != nil || !ex.recordCompletion(s, pending, all) {
		ex.runAll(all)
	}
}

// finish does all of a list, and keeps its memory.
func (ex *executor) runAll(all []func()) {
	for i, then := range all {
		then()
		all[i] = nil
	}
	ex.freeLists = append(ex.freeLists, all[:0])
}

// sendWave sends the ops of a wave and empties it.
func (ex *executor) sendLevel(l *level) {
	ex.mega.deferAccepted(l.single)
	for i, p := range l.single {
		if ex.err() == nil {
			ex.fail(ex.sendOp(p))
		}
		ex.ops.addCallback(p)
		l.single[i] = nil
	}
	for i := range l.batches {
		ops := l.batches[i].ops
		if ex.err() == nil {
			ex.fail(ops[0].batch.sendBatch(ex, ops))
		}
		for k, p := range ops {
			ex.ops.addCallback(p)
			ops[k] = nil
		}
	}
	l.single, l.batches = l.single[:0], l.batches[:0]
	ex.mega.nextLevel()
}

func (ex *executor) sendOp(p *op) error {
	switch {
	case ex.mega.accepts(p.call):
		return ex.mega.append(p.call)
	case !p.onCopyStream:
		if err := ex.mega.flush(); err != nil {
			return err
		}
	}
	if p.send != nil {
		return p.send()
	}
	return ex.launch(p.call)
}

func (q *opQueue) addCallback(p *op) {
	switch {
	case p.then == nil:
	case p.onCopyStream:
		q.copied = append(q.copied, p.then)
	default:
		q.computed = append(q.computed, p.then)
	}
}
