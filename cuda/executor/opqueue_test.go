package executor

import (
	"errors"
	"slices"
	"testing"
)

// Readers of the same memory share a level; a writer comes after all earlier readers and writers.
func TestLevels(t *testing.T) {
	var q opQueue
	var a, b Dependency
	levelOf := func(accesses ...Access) int {
		q.add(&Op{accesses: accesses, Send: func() error { return nil }})
		for i := range q.levels {
			if len(q.levels[i].single) > 0 && slices.ContainsFunc(q.levels[i].single,
				func(p *Op) bool { return slices.Equal(p.accesses, accesses) }) {
				q.levels[i].single = nil
				return i + 1
			}
		}
		return 0
	}
	for i, c := range []struct {
		accesses []Access
		want     int
	}{
		{[]Access{Writes(&a)}, 1}, {[]Access{Writes(&b)}, 1}, {[]Access{Reads(&a)},
			2}, {[]Access{Reads(&a), Writes(&b)}, 2}, {[]Access{Writes(&a)}, 3},
		{[]Access{Reads(&a), Reads(&b)}, 4}, {[]Access{Reads(&b)}, 3}, {[]Access{Writes(&b)}, 5},
	} {
		if got := levelOf(c.accesses...); got != c.want {
			t.Errorf("op %d goes to level %d, want %d", i, got, c.want)
		}
	}
}

// batchAll batches with all of its kind, once an iteration.
type batchAll struct{ sent *[][]*Op }

func (c batchAll) BatchesWith(Batchable) bool { return true }
func (c batchAll) LevelStride() int           { return LevelsPerIteration }
func (c batchAll) SendBatch(_ *Executor, ops []*Op) error {
	*c.sent = append(*c.sent, append([]*Op(nil), ops...))
	return nil
}

// Of an agent that has queued three iterations the first is sent; an agent that comes then shares
// the launch of its second.
func TestBatchesInLaterIterations(t *testing.T) {
	var sent [][]*Op
	var ahead, late Dependency
	ex := &Executor{Collector: separateLaunches{}}
	ask := func(on *Dependency) *Op {
		p := &Op{accesses: []Access{Writes(on)}, Batch: batchAll{&sent}}
		ex.ops.add(p)
		return p
	}
	first, second, third := ask(&ahead), ask(&ahead), ask(&ahead)
	ex.sendIteration()
	other := ask(&late)
	for ex.ops.count > 0 {
		ex.sendIteration()
	}
	want := [][]*Op{{first}, {second, other}, {third}}
	if !slices.EqualFunc(sent, want, slices.Equal) {
		t.Errorf("sent %v, want %v", sent, want)
	}
}

// While the GPU computes, a launch of the megakernel waits until it has four iterations of all
// agents, if these do not wait for their gradients. It does not wait for one launch too many, nor
// with an operation that somebody waits for.
func TestFullLaunches(t *testing.T) {
	const agents = 3
	var sent [][]*Op
	ex := &Executor{Collector: separateLaunches{}}
	q := &ex.ops
	grads := make([]Dependency, agents)
	gradient := func(agent int) {
		q.add(&Op{accesses: []Access{Writes(&grads[agent])}, Batch: batchAll{&sent}, Then: func() {}})
	}
	check := func(what string, inFlight int, want bool) {
		t.Helper()
		ex.onStream = make([]completion, inFlight)
		if got := ex.shouldSend(); got != want {
			t.Errorf("%s, with %d launches before the GPU: sends is %t, want %t", what, inFlight, got, want)
		}
	}
	q.agents, q.joined = agents, true
	gradient(0)
	check("agents that wait for their gradients", 1, true)
	for i := range (maxJoined + 1) * agents {
		gradient(i % agents)
		check("four iterations at last", 1, i == (maxJoined+1)*agents-1)
		check("an idle GPU", 0, true)
		check("two launches", maxInFlight, false)
	}
	q.removeSent(LevelsPerIteration)
	check("three iterations", 1, false)
	q.joined = false
	check("launches of their own", 1, true)
	q.joined = true
	q.add(&Op{Then: func() {}, Send: func() error { return nil }})
	check("an operation that somebody waits for", 1, true)
	*q = opQueue{agents: agents, joined: true, ahead: aheadFor}
	ex.onStream, grads = nil, make([]Dependency, agents)
	ex.Fail(errors.New("nothing is sent"))
	gradient(1)
	ex.sendIteration() // an idle GPU gets an iteration that is not full
	q.joined = true
	gradient(1)
	check("a launch after one that has waited in vain", 1, true)
}
