package snapshot

import "sync/atomic"

// Reservation allows one checkpoint at a time: one that was requested and is not written yet.
type Reservation struct {
	busy  atomic.Bool
	freed chan struct{}
}

// NewReservation makes a reservation that is free.
func NewReservation() *Reservation { return &Reservation{freed: make(chan struct{}, 1)} }

// Reserve reports whether no checkpoint is being made, and if so reserves the next one.
func (r *Reservation) Reserve() bool { return r.busy.CompareAndSwap(false, true) }

func (r *Reservation) Release() {
	r.busy.Store(false)
	select {
	case r.freed <- struct{}{}:
	default: // nobody has received the earlier value
	}
}

// Freed receives a value after Release was called.
func (r *Reservation) Freed() <-chan struct{} { return r.freed }
