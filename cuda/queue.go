package cuda

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// queue is how work comes to the owner, in the order in which it is sent. The owner takes all that
// is there in one go, and is woken only where it sleeps: so senders mostly append to a list, and
// wait for nobody unless the list is full.
type queue struct {
	mu     sync.Mutex
	items  []item
	count  atomic.Int32 // of items
	closed bool
	asleep bool          // the owner waits for wake
	wake   chan struct{} // room for one
	room   sync.Cond     // the owner has taken a full list
	looks  int           // before the owner sleeps
}

// item is an op for the window, or a task to do at once.
type item struct {
	op   *op
	task func()
}

// waits tells whether an item may lie in the queue of an owner who sleeps: an operation on vectors
// that nobody waits for. What needs it, a gradient or somebody who reads, comes behind it.
func (it item) waits() bool { return it.op != nil && it.op.then == nil }

// mostWaiting is how many items lie there at most.
const mostWaiting = 64

// mostQueued is how much work may wait for the owner before a sender has to wait.
const mostQueued = 256

// mostLooks is how often an owner with nothing to do looks for work before it sleeps, where there
// are more processors than it takes to keep busy whoever sends the work: to wake it costs more than
// that. fewProcessors are too few for that.
const (
	mostLooks     = 20000 // some 20 µs
	fewProcessors = 4
)

func newQueue() *queue {
	q := &queue{wake: make(chan struct{}, 1)}
	if runtime.GOMAXPROCS(0) >= fewProcessors {
		q.looks = mostLooks
	}
	q.room.L = &q.mu
	return q
}

// push appends an item. It is false after close.
func (q *queue) push(it item) bool {
	q.mu.Lock()
	for len(q.items) >= mostQueued && !q.closed {
		q.room.Wait()
	}
	if q.closed {
		q.mu.Unlock()
		return false
	}
	q.items = append(q.items, it)
	q.count.Store(int32(len(q.items)))
	wake := q.asleep && (!it.waits() || len(q.items) >= mostWaiting)
	if wake {
		q.asleep = false
	}
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
	return true
}

// take returns all items, and makes old, what it returned before, the list of the next ones. It is
// the owner's, as wait is.
func (q *queue) take(old []item) []item {
	if q.count.Load() == 0 {
		return old[:0]
	}
	clear(old)
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.items
	if len(all) >= mostQueued {
		q.room.Broadcast()
	}
	q.items = old[:0]
	q.count.Store(0)
	return all
}

// wait returns when there is an item, or none to come: then it is false.
func (q *queue) wait() bool {
	for range q.looks {
		if q.count.Load() > 0 {
			return true
		}
	}
	q.mu.Lock()
	if len(q.items) > 0 || q.closed {
		defer q.mu.Unlock()
		return len(q.items) > 0
	}
	q.asleep = true
	q.mu.Unlock()
	<-q.wake
	return q.count.Load() > 0
}

// close lets no more items in. Those that are there can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	wake := q.asleep
	q.asleep = false
	q.room.Broadcast()
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
}
