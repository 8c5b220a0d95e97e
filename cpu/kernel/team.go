package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// team is helpers that take parts of a kernel off the goroutine that runs it. One goroutine at a
// time may hand out work.
//
// A helper that has nothing to do looks for work for a while, and then sleeps: waking it takes
// longer than many a kernel. So the caller never waits for one that has not come in time: a helper
// joins a job, and the caller waits for those that did.
type Team struct {
	workers    []*worker
	generation atomic.Uint32 // counts jobs
	quit       atomic.Bool
	active     atomic.Int32 // helpers at work; closed while there is no work
	next       atomic.Int32 // the part to be taken next
	job        task
}

// task is what a team is at.
type task struct {
	run   func(o *Args, part, of int)
	o     *Args
	parts int
}

// closed is what inside lies at, or above by as many helpers as have not left, when no helper may
// join.
const closed = -1 << 16

// watch is how long a helper looks for work before it sleeps. The vector kernels between the
// gradients of an agent take about as long.
const spinTime = 100 * time.Microsecond

// helper is a goroutine of a team.
type worker struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// newTeam starts so many helpers, which run until stop.
func NewTeam(helpers int) *Team {
	t := &Team{}
	t.active.Store(closed)
	for range helpers {
		h := &worker{wake: make(chan struct{}, 1)}
		t.workers = append(t.workers, h)
		go t.loop(h)
	}
	return t
}

// stop ends the helpers. No work may be handed out after it.
func (t *Team) Stop() {
	t.quit.Store(true)
	t.wakeAll()
}

// do runs all parts of a job, on the caller's goroutine and on the helpers that come.
func (t *Team) Run(run func(o *Args, part, of int), o *Args, parts int) {
	t.job = task{run, o, parts}
	t.next.Store(0)
	t.active.Store(0)
	t.generation.Add(1)
	t.wakeAll()
	t.runParts()
	for t.active.Add(closed); t.active.Load() != closed; {
		runtime.Gosched()
	}
	t.job = task{} // a team that waits keeps no operand alive
}

// rouse wakes helpers that sleep.
func (t *Team) wakeAll() {
	for _, h := range t.workers {
		if h.asleep.Load() && h.asleep.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
}

// work takes parts until none is left.
func (t *Team) runParts() {
	for {
		part := int(t.next.Add(1)) - 1
		if part >= t.job.parts {
			return
		}
		t.job.run(t.job.o, part, t.job.parts)
	}
}

// help is the life of a helper.
func (t *Team) loop(h *worker) {
	for seen := uint32(0); ; {
		round, ok := t.wait(h, seen)
		if !ok {
			return
		}
		seen = round
		if t.tryJoin() {
			t.runParts()
			t.active.Add(-1)
		}
	}
}

// join enters the job at hand, if there still is one.
func (t *Team) tryJoin() bool {
	for {
		n := t.active.Load()
		if n < 0 {
			return false
		}
		if t.active.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// await returns when there is a job other than the last one seen, or false when the team is told to
// stop.
func (t *Team) wait(h *worker, seen uint32) (round uint32, ok bool) {
	changed := func() bool { round = t.generation.Load(); return round != seen || t.quit.Load() }
	for begin := time.Now(); time.Since(begin) < spinTime; runtime.Gosched() {
		for range 64 {
			if changed() {
				return round, !t.quit.Load()
			}
		}
	}
	h.asleep.Store(true)
	// A job that came in between has seen a helper awake: then it is the helper's own turn to look.
	if changed() && h.asleep.CompareAndSwap(true, false) {
		return round, !t.quit.Load()
	}
	<-h.wake
	changed()
	return round, !t.quit.Load()
}

// teams is what a Device has of teams: those that no Program uses at the moment, and how many more
// may be made.
type TeamPool struct {
	mu        sync.Mutex
	idle      []*Team
	remaining int // teams that may still be started
	workers   int // of each team
	closed    bool
}

// NewTeamPool returns a pool of at most so many teams, each of which has so many workers. It starts a team when one is needed.
func NewTeamPool(teams, workers int) *TeamPool { return &TeamPool{remaining: teams, workers: workers} }

// take lends a team, or nil if all are busy.
func (t *TeamPool) Acquire() *Team {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.idle); n > 0 {
		one := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return one
	}
	if t.remaining == 0 || t.closed {
		return nil
	}
	t.remaining--
	return NewTeam(t.workers)
}

// give takes a team back.
func (t *TeamPool) Release(one *Team) {
	if one == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		one.Stop()
		return
	}
	t.idle = append(t.idle, one)
}

// close ends all teams, those at work when they are given back.
func (t *TeamPool) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, one := range t.idle {
		one.Stop()
	}
	t.idle = nil
}
