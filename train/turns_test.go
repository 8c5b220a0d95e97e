package train

import (
	"testing"

	"fspda/device"
	"fspda/train/algo"
)

// The agent that asked last gets the next vector.
func TestTurns(t *testing.T) {
	w, v := &turns{}, cpuDevice.NewVector(1)
	w.give(v)
	if w.take() != v {
		t.Error("another vector than the one that was given")
	}
	order := make(chan int)
	for i := range 3 {
		go func() {
			got := w.take()
			order <- i
			w.give(got)
		}()
		for waiting := 0; waiting <= i; {
			w.mu.Lock()
			waiting = len(w.waiting)
			w.mu.Unlock()
		}
	}
	w.give(v)
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
	m := &mailboxes{dev: cpuDevice, empty: cpuDevice.NewVector(2), at: a.Mailbox()}
	agents := make([]*algo.State, 3)
	for i := range agents {
		agents[i] = algo.NewBorrower(a, cpuDevice, cpuDevice.NewVector(2))
		m.close(agents[i])
	}
	var first device.Vector
	for i, s := range agents {
		if s.Aux[at] != m.empty {
			t.Fatalf("agent %d begins with a mailbox", i)
		}
		m.open(s)
		m.open(s) // no effect
		if i == 0 {
			first = s.Aux[at]
		}
		if s.Aux[at] == m.empty || s.Aux[at] != first {
			t.Errorf("agent %d does not use the mailbox of the one before", i)
		}
		m.close(s)
	}
	m.open(agents[0])
	m.open(agents[1])
	if agents[0].Aux[at] == agents[1].Aux[at] {
		t.Error("two agents use one mailbox")
	}
}
