package vectorpool

import (
	"sync"

	"fspda/device"
	"fspda/train/algo"
)

// Pool provides agents with a gradient vector and a mailbox while they need them. It is safe for
// concurrent use; a state belongs to the goroutine of its agent. Acquiring a vector that the agent
// has, and releasing one that it has not, has no effect.
type Pool interface {
	// NewState returns the state of an agent that starts at x, whose ownership it takes. A shared
	// gradient vector and mailbox must be acquired before they are used.
	NewState(x device.Vector) *algo.State
	// AcquireGradient waits for a gradient vector. Its content is undefined.
	AcquireGradient(s *algo.State)
	ReleaseGradient(s *algo.State)
	// AcquireMailbox gives the agent a mailbox of zeros that it may write to.
	AcquireMailbox(s *algo.State)
	// ReleaseMailbox takes the mailbox, which must be zero again. The agent may still read it.
	ReleaseMailbox(s *algo.State)
}

var _, _ Pool = Private{}, (*Shared)(nil)

// Private is the Pool of agents that each have vectors of their own.
type Private struct {
	Device device.Device
	Algo   algo.Algorithm
}

func (p Private) NewState(x device.Vector) *algo.State { return algo.NewState(p.Algo, p.Device, x) }

func (Private) AcquireGradient(*algo.State) {}
func (Private) ReleaseGradient(*algo.State) {}
func (Private) AcquireMailbox(*algo.State)  {}
func (Private) ReleaseMailbox(*algo.State)  {}

// Shared is a Pool of a fixed number of gradient vectors, which limits how many agents compute at a
// time, and of as many mailboxes as agents hold at a time. The algorithm must have
// [algo.Memory] whose gradient is Transient.
type Shared struct {
	dev  device.Device
	algo algo.Algorithm
	zero device.Vector // Agents without a mailbox read this vector, to which nobody writes.
	at   []int         // The places of a mailbox's vectors in algo.State.Aux.

	mu        sync.Mutex
	gradients []device.Vector
	waiting   []chan device.Vector // One channel for each goroutine that waits for a gradient vector.
	mailboxes []device.Vector      // Free vectors of mailboxes, which hold zeros.
}

// NewShared makes a pool of n gradient vectors for agents of an algorithm with dim parameters.
func NewShared(dev device.Device, a algo.Algorithm, dim, n int) *Shared {
	p := &Shared{dev: dev, algo: a, zero: dev.NewVector(dim), at: a.Traits().Mailbox}
	for range n {
		p.gradients = append(p.gradients, dev.NewVector(dim))
	}
	return p
}

func (p *Shared) NewState(x device.Vector) *algo.State {
	s := algo.NewPooledState(p.algo, p.dev, x)
	for _, k := range p.at {
		s.Aux[k] = p.zero
	}
	return s
}

// AcquireGradient waits for a free vector. The agent that asked last gets the next one: the agents of
// its exchanges have just computed, so that their vectors and its own are in the processor's cache.
func (p *Shared) AcquireGradient(s *algo.State) {
	if s.Gradient() == nil {
		s.SetGradient(p.gradient())
	}
}

func (p *Shared) gradient() device.Vector {
	p.mu.Lock()
	if v := pop(&p.gradients); v != nil {
		p.mu.Unlock()
		return v
	}
	own := make(chan device.Vector, 1)
	p.waiting = append(p.waiting, own)
	p.mu.Unlock()
	return <-own
}

func (p *Shared) ReleaseGradient(s *algo.State) {
	v := s.Gradient()
	if v == nil {
		return
	}
	s.SetGradient(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := pop(&p.waiting); next != nil {
		next <- v
		return
	}
	p.gradients = append(p.gradients, v)
}

func (p *Shared) AcquireMailbox(s *algo.State) {
	for _, k := range p.at {
		if s.Aux[k] == p.zero {
			s.Aux[k] = p.mailbox()
		}
	}
}

func (p *Shared) mailbox() device.Vector {
	p.mu.Lock()
	v := pop(&p.mailboxes)
	p.mu.Unlock()
	if v == nil {
		v = p.dev.NewVector(p.zero.Len())
	}
	return v
}

func (p *Shared) ReleaseMailbox(s *algo.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.at {
		if v := s.Aux[k]; v != p.zero {
			p.mailboxes = append(p.mailboxes, v)
			s.Aux[k] = p.zero
		}
	}
}

// pop removes and returns the last element of a stack. It returns the zero value if there is none.
func pop[T any](stack *[]T) (v T) {
	if last := len(*stack) - 1; last >= 0 {
		v, *stack = (*stack)[last], (*stack)[:last]
	}
	return v
}
