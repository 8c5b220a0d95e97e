package cuda

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// queue is how work comes to the owner, in the order in which it is sent. The owner takes all that
// is there in one go, and is woken only where it sleeps: so senders mostly append to a list, and
// wait for nobody unless the list is full.
type inbox struct {
	mu       sync.Mutex
	items    []item
	count    atomic.Int32 // of items
	closed   bool
	sleeping bool          // the owner waits for wake
	wake     chan struct{} // room for one
	notFull  sync.Cond     // the owner has taken a full list
	spins    int           // before the owner sleeps
}

// item is an op for the window, or a task to do at once.
type item struct {
	op   *op
	task func()
}

// waits tells whether an item may lie in the queue of an owner who sleeps: an operation on vectors
// that nobody waits for. What needs it, a gradient or somebody who reads, comes behind it.
func (it item) deferrable() bool { return it.op != nil && it.op.then == nil }

// mostWaiting is how many items lie there at most.
const maxDeferred = 64

// mostQueued is how much work may wait for the owner before a sender has to wait.
const maxQueued = 256

// mostLooks is how often an owner with nothing to do looks for work before it sleeps, where there
// are more processors than it takes to keep busy whoever sends the work: to wake it costs more than
// that. fewProcessors are too few for that.
const (
	inboxSpins     = 20000 // some 20 µs
	minProcsToSpin = 4
)

func newInbox() *inbox {
	in := &inbox{wake: make(chan struct{}, 1)}
	if runtime.GOMAXPROCS(0) >= minProcsToSpin {
		in.spins = inboxSpins
	}
	in.notFull.L = &in.mu
	return in
}

// push appends an item. It is false after close.
func (in *inbox) push(it item) bool {
	in.mu.Lock()
	for len(in.items) >= maxQueued && !in.closed {
		in.notFull.Wait()
	}
	if in.closed {
		in.mu.Unlock()
		return false
	}
	in.items = append(in.items, it)
	in.count.Store(int32(len(in.items)))
	wake := in.sleeping && (!it.deferrable() || len(in.items) >= maxDeferred)
	if wake {
		in.sleeping = false
	}
	in.mu.Unlock()
	if wake {
		in.wake <- struct{}{}
	}
	return true
}

// take returns all items, and makes old, what it returned before, the list of the next ones. It is
// the owner's, as wait is.
func (in *inbox) takeAll(old []item) []item {
	if in.count.Load() == 0 {
		return old[:0]
	}
	clear(old)
	in.mu.Lock()
	defer in.mu.Unlock()
	all := in.items
	if len(all) >= maxQueued {
		in.notFull.Broadcast()
	}
	in.items = old[:0]
	in.count.Store(0)
	return all
}

// wait returns when there is an item, or none to come: then it is false.
func (in *inbox) wait() bool {
	for range in.spins {
		if in.count.Load() > 0 {
			return true
		}
	}
	in.mu.Lock()
	if len(in.items) > 0 || in.closed {
		defer in.mu.Unlock()
		return len(in.items) > 0
	}
	in.sleeping = true
	in.mu.Unlock()
	<-in.wake
	return in.count.Load() > 0
}

// close lets no more items in. Those that are there can still be taken.
func (in *inbox) close() {
	in.mu.Lock()
	in.closed = true
	wake := in.sleeping
	in.sleeping = false
	in.notFull.Broadcast()
	in.mu.Unlock()
	if wake {
		in.wake <- struct{}{}
	}
}
