package snapshot

import "sync"

// Outbox is an unbounded queue of snapshots to be delivered, for an agent in real time, which does
// not wait. The zero value is an empty one.
type Outbox struct {
	mu     sync.Mutex
	more   sync.Cond
	list   []*Snapshot
	closed bool
}

func (o *Outbox) lock() {
	o.mu.Lock()
	o.more.L = &o.mu
}

func (o *Outbox) Add(sn *Snapshot) {
	o.lock()
	defer o.mu.Unlock()
	o.list = append(o.list, sn)
	o.more.Signal()
}

// Close ends Deliver once all snapshots are delivered.
func (o *Outbox) Close() {
	o.lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

// TryNext removes the oldest snapshot; nil if there is none.
func (o *Outbox) TryNext() *Snapshot {
	o.lock()
	defer o.mu.Unlock()
	return o.take()
}

// take removes the oldest snapshot. The caller holds the lock.
func (o *Outbox) take() (sn *Snapshot) {
	if len(o.list) > 0 {
		sn, o.list = o.list[0], o.list[1:]
	}
	return sn
}

// next removes the oldest snapshot. It waits for one; nil means that the queue is closed and empty.
func (o *Outbox) next() *Snapshot {
	o.lock()
	defer o.mu.Unlock()
	for len(o.list) == 0 && !o.closed {
		o.more.Wait()
	}
	return o.take()
}

// Deliver passes all snapshots to send, in order, until the queue is closed and empty. After an
// error it discards them.
func (o *Outbox) Deliver(send func(*Snapshot) error) (err error) {
	for sn := o.next(); sn != nil; sn = o.next() {
		if err == nil {
			err = send(sn)
		}
	}
	return err
}
