package lend

import (
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/train/algo"
)

var dev = devicetest.NewFloat64()

// The agent that asked last gets the next vector.
func TestTurns(t *testing.T) {
	w, v := &Turns{}, dev.NewVector(1)
	w.Give(v)
	if w.Take() != v {
		t.Error("another vector than the one that was given")
	}
	order := make(chan int)
	for i := range 3 {
		go func() {
			got := w.Take()
			order <- i
			w.Give(got)
		}()
		for waiting := 0; waiting <= i; {
			w.mu.Lock()
			waiting = len(w.waiting)
			w.mu.Unlock()
		}
	}
	w.Give(v)
	for want := 2; want >= 0; want-- {
		if i := <-order; i != want {
			t.Errorf("agent %d computes, want %d", i, want)
		}
	}
}

// Only agents that hold an exchange have a mailbox of their own, and a mailbox is used again.
func TestMailboxes(t *testing.T) {
	a := algo.Async{Protocol: algo.Protocol{Coef: algo.One}}
	at := a.Mailbox()[0]
	m := NewMailboxes(dev, a, 2)
	agents := make([]*algo.State, 3)
	for i := range agents {
		agents[i] = algo.NewBorrower(a, dev, dev.NewVector(2))
		m.Close(agents[i])
	}
	var first device.Vector
	for i, s := range agents {
		if s.Aux[at] != m.empty {
			t.Fatalf("agent %d begins with a mailbox", i)
		}
		m.Open(s)
		m.Open(s) // no effect
		if i == 0 {
			first = s.Aux[at]
		}
		if s.Aux[at] == m.empty || s.Aux[at] != first {
			t.Errorf("agent %d does not use the mailbox of the one before", i)
		}
		m.Close(s)
	}
	m.Open(agents[0])
	m.Open(agents[1])
	if agents[0].Aux[at] == agents[1].Aux[at] {
		t.Error("two agents use one mailbox")
	}
}
