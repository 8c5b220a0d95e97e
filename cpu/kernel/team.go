package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Team is a set of workers that compute parts of a kernel for the goroutine that runs it. Only one
// goroutine at a time may call Run.
//
// A worker without work polls for a while and then sleeps: waking it takes longer than many
// kernels. So Run never waits for a worker that has not joined in time; it waits only for those
// that have.
type Team struct {
	workers    []*worker
	generation atomic.Uint32 // counts jobs
	quit       atomic.Bool
	active     atomic.Int32 // workers that have joined the job; below zero while no job is open
	next       []turn       // one turn for each share of the parts
	job        task
}

// turn is the part of a share that is taken next, in a cache line of its own.
type turn struct {
	part atomic.Int32
	_    [CacheLine - 4]byte
}

// task is the job of a team.
type task struct {
	run   func(o *Args, part, of int)
	o     *Args
	parts int
}

// closed is the value of active when no worker may join; while workers leave, active is closed plus
// their number.
const closed = -1 << 16

// spinTime is how long a worker polls before it sleeps. The vector operations between the gradients
// of an agent take about as long.
const spinTime = 100 * time.Microsecond

// worker is a goroutine of a team.
type worker struct {
	number int // counted from 1: 0 is the goroutine that calls Run
	asleep atomic.Bool
	wake   chan struct{}
}

// NewTeam starts workers, which run until Stop.
func NewTeam(workers int) *Team {
	t := &Team{next: make([]turn, workers+1)}
	t.active.Store(closed)
	for i := range workers {
		w := &worker{number: i + 1, wake: make(chan struct{}, 1)}
		t.workers = append(t.workers, w)
		go t.loop(w)
	}
	return t
}

// Stop ends the workers. Run must not be called after it.
func (t *Team) Stop() {
	t.quit.Store(true)
	t.wakeAll()
}

// Run computes all parts of a job on the calling goroutine and on the workers that join.
func (t *Team) Run(run func(o *Args, part, of int), o *Args, parts int) {
	t.job = task{run, o, parts}
	for i := range t.next {
		first, _ := Split(i, len(t.next), parts)
		t.next[i].part.Store(int32(first))
	}
	t.active.Store(0)
	t.generation.Add(1)
	t.wakeAll()
	t.runParts(0)
	for t.active.Add(closed); t.active.Load() != closed; {
		runtime.Gosched()
	}
	t.job = task{} // an idle team keeps no operand alive
}

// wakeAll wakes the workers that sleep.
func (t *Team) wakeAll() {
	for _, w := range t.workers {
		if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}

// runParts takes parts until none is left: first parts of the goroutine's own share, then parts
// that others have not taken yet. A part of a matrix thus mostly stays with one goroutine from
// kernel to kernel, and in the caches of its core.
func (t *Team) runParts(number int) {
	for i := range t.next {
		share := (number + i) % len(t.next)
		first, n := Split(share, len(t.next), t.job.parts)
		for part := int(t.next[share].part.Add(1)) - 1; part < first+n; part = int(t.next[share].part.Add(1)) - 1 {
			t.job.run(t.job.o, part, t.job.parts)
		}
	}
}

// loop is the life of a worker.
func (t *Team) loop(w *worker) {
	for seen := uint32(0); ; {
		round, ok := t.wait(w, seen)
		if !ok {
			return
		}
		seen = round
		if t.tryJoin() {
			t.runParts(w.number)
			t.active.Add(-1)
		}
	}
}

// tryJoin joins the current job, if it is still open.
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

// wait returns when there is a job other than the last one seen, or false when the team is stopped.
func (t *Team) wait(w *worker, seen uint32) (round uint32, ok bool) {
	changed := func() bool { round = t.generation.Load(); return round != seen || t.quit.Load() }
	for begin := time.Now(); time.Since(begin) < spinTime; runtime.Gosched() {
		for range 64 {
			if changed() {
				return round, !t.quit.Load()
			}
		}
	}
	w.asleep.Store(true)
	// A job that came in between found this worker awake and did not wake it: then it must look
	// again.
	if changed() && w.asleep.CompareAndSwap(true, false) {
		return round, !t.quit.Load()
	}
	<-w.wake
	changed()
	return round, !t.quit.Load()
}

// TeamPool holds the teams of a Device that no Program uses, and starts more up to a limit.
type TeamPool struct {
	mu        sync.Mutex
	idle      []*Team
	remaining int // teams that may still be started
	workers   int // workers in each team
	closed    bool
}

// NewTeamPool returns a pool of teams. It starts a team when one is needed and fewer than the
// largest number run.
func NewTeamPool(teams, workers int) *TeamPool { return &TeamPool{remaining: teams, workers: workers} }

// Acquire returns a team, or nil if all are busy or t is nil.
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

// Release returns a team to the pool.
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

// Close stops all teams, those in use when they are released.
func (t *TeamPool) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, one := range t.idle {
		one.Stop()
	}
	t.idle = nil
}
