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
	ex.sendIterations()
	other := ask(&late)
	for ex.ops.count > 0 {
		ex.sendIterations()
	}
	want := [][]*Op{{first}, {second, other}, {third}}
	if !slices.EqualFunc(sent, want, slices.Equal) {
		t.Errorf("sent %v, want %v", sent, want)
	}
}

// listCollector is a megakernel that counts its launches.
type listCollector struct {
	separateLaunches
	launches int
	pending  bool
}

func (c *listCollector) Pending() bool { return c.pending }

func (c *listCollector) Flush() error {
	if c.pending {
		c.launches++
	}
	c.pending = false
	return nil
}

// collected is a gradient that the megakernel accepts.
type collected struct {
	batchAll
	to *listCollector
}

func (c collected) SendBatch(ex *Executor, ops []*Op) error {
	c.to.pending = true
	return c.batchAll.SendBatch(ex, ops)
}

// While the GPU computes, iterations that are complete are prepared, up to four, and sent then. The
// launch goes earlier where the GPU has nothing else to do, where somebody waits for an operation,
// and before a task, which may use the stream. An iteration that is not complete waits, unless the
// GPU has nothing else to do.
func TestFullLaunches(t *testing.T) {
	const agents = 3
	var sent [][]*Op
	mega := &listCollector{}
	ex := &Executor{Collector: mega}
	q := &ex.ops
	grads := make([]Dependency, agents)
	iterations := func(n int) {
		for i := range n * agents {
			q.add(&Op{accesses: []Access{Writes(&grads[i%agents])}, Batch: collected{batchAll{&sent}, mega},
				Then: func() {}})
		}
	}
	ex.Fail(errors.New("no event is recorded, and no batch sent"))
	check := func(what string, inFlight int, sends, collects bool) {
		t.Helper()
		ex.onStream = make([]completion, inFlight)
		if got := ex.shouldSend(); got != sends {
			t.Errorf("%s, with %d launches before the GPU: sends is %t, want %t", what, inFlight, got, sends)
		}
		if got := q.shouldCollect(); got != collects {
			t.Errorf("%s: collects is %t, want %t", what, got, collects)
		}
	}
	q.joined = true
	check("nothing", 0, false, false)
	iterations(1)
	check("the gradients of an iteration", 1, false, false)
	check("the gradients of an iteration", 0, true, false)
	iterations(maxJoined + 1)
	for i := range maxJoined {
		check("complete iterations", 1, false, true)
		check("an idle GPU", 0, true, true)
		ex.collectIteration()
		q.joined = true
		if q.collected != i+1 {
			t.Fatalf("%d iterations are collected, want %d", q.collected, i+1)
		}
	}
	check("a full launch", 1, true, false)
	check("a full launch", maxInFlight, false, false)
	ex.sendIterations()
	q.joined = true
	check("the fifth iteration", 1, false, true)
	ex.collectIteration()
	q.joined = true
	ran := false
	ex.accept([]item{{task: func() { ran = true }}})
	if q.collected > 0 || !ran {
		t.Errorf("%d iterations are collected after a task, and it ran: %t", q.collected, ran)
	}
	check("the gradients of an iteration", 1, false, false)
	q.joined = false
	check("launches of their own", 1, true, false)
	q.joined = true
	q.add(&Op{Then: func() {}, Send: func() error { return nil }})
	check("an operation that somebody waits for", 1, true, false)
	ex.flush()
	check("nothing", 0, false, false)
}
