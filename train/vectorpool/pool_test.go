package vectorpool

import (
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/train/algo"
)

var (
	dev   = devicetest.NewFloat64()
	async = algo.Async{Protocol: algo.Protocol{Coef: algo.One}}
)

// The agent that asked last gets the next gradient vector.
func TestGradients(t *testing.T) {
	p := NewShared(dev, async, 1, 1)
	first := p.NewState(dev.NewVector(1))
	p.AcquireGradient(first)
	v := first.Gradient()
	p.AcquireGradient(first) // no effect
	order := make(chan int)
	for i := range 3 {
		s := p.NewState(dev.NewVector(1))
		go func() {
			p.AcquireGradient(s)
			order <- i
			p.ReleaseGradient(s)
		}()
		for waiting := 0; waiting <= i; {
			p.mu.Lock()
			waiting = len(p.waiting)
			p.mu.Unlock()
		}
	}
	p.ReleaseGradient(first)
	p.ReleaseGradient(first) // no effect
	for want := 2; want >= 0; want-- {
		if i := <-order; i != want {
			t.Errorf("agent %d computes, want %d", i, want)
		}
	}
	p.AcquireGradient(first)
	if first.Gradient() != v {
		t.Error("another vector than the one that was released")
	}
}

// Only agents that hold an exchange have a mailbox, and a mailbox is used again.
func TestMailboxes(t *testing.T) {
	p, at := NewShared(dev, async, 2, 1), async.Traits().Mailbox[0]
	agents := make([]*algo.State, 3)
	for i := range agents {
		agents[i] = p.NewState(dev.NewVector(2))
	}
	var first device.Vector
	for i, s := range agents {
		if s.Aux[at] != p.zero {
			t.Fatalf("agent %d begins with a mailbox", i)
		}
		p.AcquireMailbox(s)
		p.AcquireMailbox(s) // no effect
		if i == 0 {
			first = s.Aux[at]
		}
		if s.Aux[at] == p.zero || s.Aux[at] != first {
			t.Errorf("agent %d does not use the mailbox of the one before", i)
		}
		p.ReleaseMailbox(s)
	}
	p.AcquireMailbox(agents[0])
	p.AcquireMailbox(agents[1])
	if agents[0].Aux[at] == agents[1].Aux[at] {
		t.Error("two agents use one mailbox")
	}
}

// Agents with vectors of their own keep them.
func TestPrivate(t *testing.T) {
	p, at := Private{dev, async}, async.Traits().Mailbox[0]
	s := p.NewState(dev.NewVector(2))
	g, mail := s.Gradient(), s.Aux[at]
	p.ReleaseGradient(s)
	p.ReleaseMailbox(s)
	if g == nil || mail == nil || s.Gradient() != g || s.Aux[at] != mail {
		t.Error("an agent lost its gradient vector or its mailbox")
	}
}
