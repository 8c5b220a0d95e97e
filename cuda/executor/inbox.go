package executor

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// inbox is the queue of the executor's goroutine, in the order of sending. The goroutine takes all
// items at once, and is woken only where it sleeps: so senders mostly append to a list, and wait
// only where the list is full.
type inbox struct {
	mu       sync.Mutex
	items    []item
	count    atomic.Int32 // the number of items
	closed   bool
	sleeping bool          // the executor waits for wake
	wake     chan struct{} // has capacity one
	notFull  sync.Cond     // signalled when a full list is taken
	spins    int           // polls before the executor sleeps
}

// item is an operation to queue, or a task to run at once.
type item struct {
	op   *Op
	task func()
}

// deferrable reports whether an item may stay in the inbox of a sleeping executor: an operation
// that nobody waits for. A caller that needs its result sends an item that wakes the executor.
func (it item) deferrable() bool { return it.op != nil && it.op.Then == nil }

// Limits of an inbox.
const (
	maxDeferred = 64  // items that lie in the inbox of a sleeping executor
	maxQueued   = 256 // items at which senders wait
)

// inboxSpins is how often the executor polls an empty inbox before it sleeps, about 20 µs: to wake
// it costs more. It does so where there are at least minProcsToSpin processors, so that the senders
// are not kept from theirs.
const (
	inboxSpins     = 20000
	lockSpins      = 2000 // attempts to lock the list, a few µs
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

// takeAll returns all items, and keeps the memory of old, its previous result, for the next ones.
// The executor calls it, and wait.
func (in *inbox) takeAll(old []item) []item {
	clear(old)
	if in.count.Load() == 0 {
		return old[:0]
	}
	in.lock()
	defer in.mu.Unlock()
	all := in.items
	if len(all) >= maxQueued {
		in.notFull.Broadcast()
	}
	in.items = old[:0]
	in.count.Store(0)
	return all
}

// lock locks the list. Senders hold it for much less time than the executor needs to get a processor
// again, so that it spins first.
func (in *inbox) lock() {
	for range lockSpins {
		if in.mu.TryLock() {
			return
		}
	}
	in.mu.Lock()
}

// wait returns when there is an item, or when the inbox is closed: then it is false.
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

// close refuses further items. Those in the inbox can still be taken.
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
