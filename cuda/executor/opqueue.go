package executor

import (
	"cmp"
	"slices"

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
// While the GPU computes, the executor hands complete iterations to the collector, which prepares
// their launch, up to maxJoined of them: each launch of the megakernel takes some time, however many
// iterations it has. The launch is sent once it is full, or once the GPU has nothing else to do, and
// then the host has little left to do for it. An iteration that is not complete is sent where the
// GPU has nothing else to do, with no other. Results are bit-identical however operations are
// grouped.
//
// Invariant: launched ≤ sent < level of every queued operation ≤ sent + len(levels).
type opQueue struct {
	launched   uint64   // the last level that is before the GPU
	sent       uint64   // the last level that was handed to the collector or launched
	levels     []*level // sent+1, sent+2, …
	count      int      // the number of operations
	freeLevels []*level // empty, kept for their memory

	awaited uint64 // the last level with an operation, besides gradients, that somebody waits for

	// the vectors of gradients that the agents compute: an iteration is complete once each has a
	// gradient in a later one
	gradients []*Dependency
	collected int  // iterations that the collector has and the GPU has not
	joined    bool // the last gradients were collected for a launch of the megakernel

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
	// levels after which a vector without a gradient is no longer waited for
	forgottenAfter = 4 * LevelsPerIteration
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
		q.noteGradient(p)
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

// noteGradient notes the vector that a gradient is written to.
func (q *opQueue) noteGradient(p *Op) {
	for _, a := range p.accesses {
		if a.write && !slices.Contains(q.gradients, a.On) {
			q.gradients = append(q.gradients, a.On)
		}
	}
}

// complete returns how many iterations are complete: nothing will be added to them. An agent whose
// partner is behind has no gradient in some iterations.
func (q *opQueue) complete() int {
	if len(q.gradients) == 0 {
		return 0
	}
	first := slices.MinFunc(q.gradients, func(a, b *Dependency) int { return cmp.Compare(a.written, b.written) })
	return max(0, int((first.written-1)/LevelsPerIteration)-int(q.sent/LevelsPerIteration))
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

// hasGradients reports whether a level has a gradient.
func (l *level) hasGradients() bool {
	return slices.ContainsFunc(l.batches, func(b opBatch) bool { return b.ops[0].isGradient() })
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

// shouldSend reports whether to send a launch, with an empty inbox. While the GPU computes, one of
// the megakernel waits until it is full, unless somebody waits for its results.
func (ex *Executor) shouldSend() bool {
	q, waits := &ex.ops, len(ex.onStream)
	if q.count == 0 && q.collected == 0 || waits >= maxInFlight {
		return false
	}
	return waits == 0 || !q.joined || q.awaited > q.launched || q.collected >= maxJoined
}

// shouldCollect reports whether to prepare a further iteration of the next launch.
func (q *opQueue) shouldCollect() bool {
	return q.joined && q.collected < maxJoined && q.complete() > 0
}

// flush sends all operations.
func (ex *Executor) flush() {
	for ex.ops.count > 0 || ex.ops.collected > 0 {
		ex.sendIterations()
	}
}

// sendIterations sends the iterations that are collected, or the first one that is queued.
func (ex *Executor) sendIterations() {
	q := &ex.ops
	if q.collected == 0 {
		ex.collectIteration()
	}
	ex.Fail(ex.Collector.Flush())
	q.collected, q.launched = 0, q.sent
	ex.callAfter(ex.CopyStream, &ex.onCopyStream, &q.copied)
	ex.callAfter(ex.Stream, &ex.onStream, &q.computed)
}

// collectIteration sends the levels up to the end of an iteration, of which the collector keeps
// what it accepts.
func (ex *Executor) collectIteration() {
	q := &ex.ops
	n := q.iteration()
	for _, l := range q.levels[:n] {
		q.count -= l.count()
		gradients := l.hasGradients()
		ex.sendLevel(l)
		if gradients {
			q.joined = ex.Collector.Pending()
		}
		ex.Collector.NextLevel()
	}
	q.removeSent(n)
	q.collected++
	q.gradients = slices.DeleteFunc(q.gradients, func(on *Dependency) bool {
		return on.written+forgottenAfter <= q.sent
	})
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
