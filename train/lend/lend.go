package lend

import (
	"sync"

	"fspda/device"
	"fspda/train/algo"
)

// Turns are the vectors for gradients of a worker. An agent that computes has one, so they also
// limit how many agents compute at a time. The agent that asked last gets one first: the others of
// its exchanges have just computed, and their vectors and its own are in the cache.
type Turns struct {
	mu      sync.Mutex
	free    []device.Vector
	waiting []chan device.Vector
}

// Take waits for a vector.
func (w *Turns) Take() device.Vector {
	w.mu.Lock()
	if last := len(w.free) - 1; last >= 0 {
		defer w.mu.Unlock()
		v := w.free[last]
		w.free = w.free[:last]
		return v
	}
	own := make(chan device.Vector, 1)
	w.waiting = append(w.waiting, own)
	w.mu.Unlock()
	return <-own
}

// Give returns a vector.
func (w *Turns) Give(v device.Vector) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.waiting) - 1; last >= 0 {
		w.waiting[last] <- v
		w.waiting = w.waiting[:last]
		return
	}
	w.free = append(w.free, v)
}

// Mailboxes are the vectors in which agents of a worker keep an exchange until their next step. An
// agent has them only as long: the next one finds them in the cache. A nil Mailboxes has no effect,
// and each agent has vectors of its own.
type Mailboxes struct {
	dev   device.Device
	empty device.Vector // zeros; nobody writes to them
	at    []int         // where they are in algo.State.Aux

	mu   sync.Mutex
	free []device.Vector // zeros
}

// NewMailboxes makes mailboxes for agents of an algorithm with so many parameters.
func NewMailboxes(dev device.Device, a algo.Algorithm, dim int) *Mailboxes {
	return &Mailboxes{dev: dev, empty: dev.NewVector(dim), at: algo.Mailbox(a)}
}

// Open gives an agent vectors of zeros that it may write to, unless it has some.
func (m *Mailboxes) Open(s *algo.State) {
	if m == nil {
		return
	}
	for _, k := range m.at {
		if s.Aux[k] == m.empty {
			s.Aux[k] = m.take()
		}
	}
}

func (m *Mailboxes) take() device.Vector {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.free) - 1
	if last < 0 {
		return m.dev.NewVector(m.empty.Len())
	}
	v := m.free[last]
	m.free = m.free[:last]
	return v
}

// Close takes an agent's vectors back, which are zero again. The agent may still read zeros.
func (m *Mailboxes) Close(s *algo.State) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.at {
		if v := s.Aux[k]; v != m.empty {
			if v != nil {
				m.free = append(m.free, v)
			}
			s.Aux[k] = m.empty
		}
	}
}
