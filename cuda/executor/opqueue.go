package executor

import (
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// Op is an operation for the GPU that waits in a queue until it is sent.
type Op struct {
	Call kernels.Call // the operation, where it is one kernel
	// not nil: sends the operation in a launch of its own; call, if any, is for a megakernel
	Send  func() error
	Batch Batchable // not nil: sends the operation together with others
	// not nil: called once the GPU has completed the operation, and after a failure too
	Then func()

	OnCopyStream bool // the operation goes to copyStream
	accesses     []Access
	accessArray  [5]Access // memory for accesses
}

// Batchable is an operation that can share launches with equal operations of other agents.
type Batchable interface {
	// SendBatch sends operations that batch with each other, in any order.
	SendBatch(ex *Executor, ops []*Op) error
	// BatchesWith reports whether two operations may go together. It is symmetric and transitive.
	BatchesWith(other Batchable) bool
	// LevelStride is the distance of the levels at which such operations go. Agents whose
	// iterations have different numbers of levels so meet again in the next iteration.
	LevelStride() int
}

// Dependency is the last levels that write and read a piece of device memory, 0 for none. It
// belongs to the executor.
type Dependency struct{ written, read uint64 }

// Access is an operand of an operation.
type Access struct {
	On    *Dependency
	write bool
}

// Reads is the access of an operation that reads.
func Reads(on *Dependency) Access { return Access{On: on} }

// Writes is the access of an operation that writes.
func Writes(on *Dependency) Access { return Access{On: on, write: true} }

func (p *Op) Reads(on *Dependency) { p.declare(Reads(on)) }

func (p *Op) Writes(on *Dependency) { p.declare(Writes(on)) }

func (p *Op) Declare(a Access) { p.declare(a) }

func (p *Op) declare(all ...Access) {
	if p.accesses == nil {
		p.accesses = p.accessArray[:0]
	}
	p.accesses = append(p.accesses, all...)
}

// opQueue holds operations that are not sent yet, by dependency levels. Levels are numbered from 1,
// and never again. An operation goes to the first unsent level after all levels of operations that
// it depends on: it reads a vector that they write, or writes one that they read or write. Within a
// level the order does not matter, so that equal operations of several agents can share a launch.
//
// When the executor has nothing else to do and the GPU has few launches before it, the levels of
// one iteration are sent, and next iterations that are complete: each launch of the megakernel
// takes some time, however many iterations it has. While the GPU computes, agents that run ahead of
// it queue the iterations of the next launch. It is sent once it is full, or once the GPU has
// nothing else to do. Results are bit-identical however operations are grouped.
//
// Invariant: sent < level of every queued operation ≤ sent + len(levels).
type opQueue struct {
	sent       uint64   // the last level that was sent
	completed  uint64   // a level up to which the GPU has completed all
	levels     []*level // sent+1, sent+2, …
	count      int      // the number of operations
	freeLevels []*level // empty, kept for their memory

	awaited uint64 // the last level with an operation, besides gradients, that somebody waits for

	agents int // how many gradients make an iteration complete: as many as an earlier one had
	// above 0: agents queue gradients before their earlier ones are computed; below 0: a launch has
	// waited in vain for a complete iteration
	ahead  int
	joined bool // the last gradients were sent in a launch of the megakernel

	computed, copied []func() // called when the two streams have completed everything that was sent
}

// level is operations that do not depend on each other.
type level struct {
	single  []*Op
	batches []opBatch
}

// opBatch is operations of a level that go together.
type opBatch struct{ ops []*Op }

const (
	maxOps             = 1024 // operations in the queue
	maxInFlight        = 2    // launches before the GPU: one that it runs, and the next
	maxJoined          = 4    // iterations in a launch of the megakernel
	LevelsPerIteration = 8    // the most levels of an agent's iteration in most algorithms
	aheadFor           = 256  // gradients for which q.ahead holds
)

func (q *opQueue) add(p *Op) {
	at := q.sent + 1
	for _, a := range p.accesses {
		at = max(at, a.On.written+1)
		if a.write {
			at = max(at, a.On.read+1)
		}
	}
	if p.Batch != nil {
		n := uint64(p.Batch.LevelStride())
		at = (at+n-2)/n*n + 1
	}
	if p.isGradient() {
		q.noteAhead(p)
	} else if p.Then != nil && !p.OnCopyStream {
		q.awaited = max(q.awaited, at)
	}
	for _, a := range p.accesses {
		if a.write {
			a.On.written = max(a.On.written, at)
		} else {
			a.On.read = max(a.On.read, at)
		}
	}
	for q.sent+uint64(len(q.levels)) < at {
		q.levels = append(q.levels, q.newLevel())
	}
	q.levels[at-q.sent-1].add(p)
	q.count++
}

// isGradient reports whether an operation is of a batch and somebody takes its result.
func (p *Op) isGradient() bool { return p.Batch != nil && p.Then != nil }

// noteAhead notes whether the vector that a gradient is written to is still to be computed.
func (q *opQueue) noteAhead(p *Op) {
	if q.ahead < 0 {
		q.ahead++
		return
	}
	q.ahead = max(0, q.ahead-1)
	for _, a := range p.accesses {
		if a.write && a.On.written > q.completed {
			q.ahead = aheadFor
		}
	}
}

// complete returns how many iterations are complete: all agents have queued their gradients of the
// iteration after it.
func (q *opQueue) complete() (n int) {
	if q.agents == 0 {
		return 0
	}
	at := LevelsPerIteration - int(q.sent%LevelsPerIteration)
	for ; at < len(q.levels) && q.levels[at].gradients() >= q.agents; at += LevelsPerIteration {
		n++
	}
	return n
}

func (q *opQueue) newLevel() *level {
	n := len(q.freeLevels)
	if n == 0 {
		return &level{}
	}
	l := q.freeLevels[n-1]
	q.freeLevels = q.freeLevels[:n-1]
	return l
}

// iteration returns how many levels there are up to the end of an iteration.
func (q *opQueue) iteration() int {
	return min(len(q.levels), int(LevelsPerIteration-q.sent%LevelsPerIteration))
}

// removeSent removes the first n levels, which were sent.
func (q *opQueue) removeSent(n int) {
	q.freeLevels = append(q.freeLevels, q.levels[:n]...)
	q.levels = q.levels[:copy(q.levels, q.levels[n:])]
	q.sent += uint64(n)
}

// addCallback notes the callback of an operation that was sent.
func (q *opQueue) addCallback(p *Op) {
	switch {
	case p.Then == nil:
	case p.OnCopyStream:
		q.copied = append(q.copied, p.Then)
	default:
		q.computed = append(q.computed, p.Then)
	}
}

func (l *level) count() int {
	n := len(l.single)
	for i := range l.batches {
		n += len(l.batches[i].ops)
	}
	return n
}

func (l *level) gradients() (n int) {
	for i := range l.batches {
		if ops := l.batches[i].ops; ops[0].isGradient() {
			n += len(ops)
		}
	}
	return n
}

func (l *level) add(p *Op) {
	if p.Batch == nil {
		l.single = append(l.single, p)
		return
	}
	for i := range l.batches {
		if b := &l.batches[i]; b.ops[0].Batch.BatchesWith(p.Batch) {
			b.ops = append(b.ops, p)
			return
		}
	}
	n := len(l.batches)
	if n == cap(l.batches) {
		l.batches = append(l.batches, opBatch{})
	}
	l.batches = l.batches[:n+1]
	l.batches[n].ops = append(l.batches[n].ops[:0], p) // uses the memory of an earlier batch
}

// EnqueueOp queues an operation with these operands, besides those that it has declared, and
// returns at once.
func (ex *Executor) EnqueueOp(p *Op, accesses ...Access) {
	p.declare(accesses...)
	if !ex.post(item{op: p}) && p.Then != nil {
		p.Then()
	}
}

// Enqueue queues an operation that send sends. It is left out after a failure.
func (ex *Executor) Enqueue(send func() error, accesses ...Access) {
	ex.EnqueueOp(&Op{Send: send}, accesses...)
}

// RunOp sends an operation after all queued ones and returns its error. It does not wait for the
// GPU.
func (ex *Executor) RunOp(send func() error, accesses ...Access) error {
	answer := make(chan error, 1)
	if !ex.post(item{task: func() {
		var failed error
		ex.ops.add(&Op{accesses: accesses, Send: func() error { failed = send(); return failed }})
		ex.flush()
		if failed == nil {
			failed = ex.Err()
		}
		answer <- failed
	}}) {
		return ErrClosed
	}
	return <-answer
}

// shouldSend reports whether to send queued operations, with an empty inbox. Where agents run ahead
// of the GPU and it computes, a launch that is not full yet waits, unless somebody waits for it.
func (ex *Executor) shouldSend() bool {
	q, waits := &ex.ops, len(ex.onStream)
	if q.count == 0 || waits >= maxInFlight {
		return false
	}
	return waits == 0 || !q.joined || q.ahead <= 0 || q.awaited > q.sent || q.complete() >= maxJoined
}

// flush sends all queued operations.
func (ex *Executor) flush() {
	for ex.ops.count > 0 {
		ex.sendIteration()
	}
}

// sendIteration sends the levels up to the end of an iteration, and the next iterations that join
// it.
func (ex *Executor) sendIteration() {
	q := &ex.ops
	if now := q.levels[0].gradients(); q.complete() == 0 && now > 0 {
		q.agents = now
		if q.ahead > 0 && q.joined && len(ex.onStream) == 0 {
			q.ahead = -aheadFor
		}
	}
	for i := 1; ; i++ {
		now, n := q.levels[0].gradients(), q.iteration()
		q.agents = max(q.agents, now)
		joins := i < maxJoined && q.complete() > 1
		last := n - 1
		for last > 0 && q.levels[last].count() == 0 {
			last--
		}
		for k, l := range q.levels[:n] {
			q.count -= l.count()
			shares := joins && k >= last && ex.Collector.Pending() && independent(q.levels[last], q.levels[n])
			ex.sendLevel(l)
			if k == 0 && now > 0 {
				q.joined = ex.Collector.Pending()
			}
			if !shares {
				ex.Collector.NextLevel()
			}
		}
		q.removeSent(n)
		if !joins || !ex.Collector.Pending() {
			break
		}
	}
	ex.Fail(ex.Collector.Flush())
	ex.callAfter(ex.CopyStream, &ex.onCopyStream, &q.copied)
	ex.callAfter(ex.Stream, &ex.onStream, &q.computed)
}

// independent reports whether no operation of a level depends on one of an earlier level.
func independent(earlier, later *level) bool {
	free := true
	earlier.each(func(a *Op) {
		later.each(func(b *Op) {
			for _, x := range a.accesses {
				for _, y := range b.accesses {
					free = free && (x.On != y.On || !x.write && !y.write)
				}
			}
		})
	})
	return free
}

func (l *level) each(f func(p *Op)) {
	for _, p := range l.single {
		f(p)
	}
	for i := range l.batches {
		for _, p := range l.batches[i].ops {
			f(p)
		}
	}
}

// callAfter has a list of callbacks called once a stream has completed all work that was sent, and
// empties it.
func (ex *Executor) callAfter(s driver.Stream, waiting *[]completion, then *[]func()) {
	all := *then
	if len(all) == 0 {
		return
	}
	*then = nil
	if n := len(ex.freeLists); n > 0 {
		*then, ex.freeLists = ex.freeLists[n-1], ex.freeLists[:n-1]
	}
	if ex.Err() != nil || !ex.recordCompletion(s, waiting, all) {
		ex.runAll(all)
	}
}

// runAll calls a list of callbacks and keeps its memory.
func (ex *Executor) runAll(all []func()) {
	for i, then := range all {
		then()
		all[i] = nil
	}
	ex.freeLists = append(ex.freeLists, all[:0])
}

func (ex *Executor) sendLevel(l *level) {
	ex.sortAcceptedLast(l.single)
	for i, p := range l.single {
		if ex.Err() == nil {
			ex.Fail(ex.Send(p))
		}
		ex.ops.addCallback(p)
		l.single[i] = nil
	}
	for i := range l.batches {
		ops := l.batches[i].ops
		if ex.Err() == nil {
			ex.Fail(ops[0].Batch.SendBatch(ex, ops))
		}
		for k, p := range ops {
			ex.ops.addCallback(p)
			ops[k] = nil
		}
	}
	l.single, l.batches = l.single[:0], l.batches[:0]
}

// Send sends one operation. It is for operations of batches that go alone.
func (ex *Executor) Send(p *Op) error {
	switch {
	case ex.Collector.Accepts(p.Call):
		return ex.Collector.Append(p.Call)
	case !p.OnCopyStream:
		if err := ex.Collector.Flush(); err != nil {
			return err
		}
	}
	if p.Send != nil {
		return p.Send()
	}
	return ex.Launch(p.Call)
}
