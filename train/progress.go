package train

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
)

// progress knows where the agents of this process are and tells each one, at the head of a step,
// whether to leave a checkpoint there or to stop. There is no barrier: a request names a step that
// no agent has reached yet, and each agent meets it in its own time.
type progress struct {
	mu     sync.Mutex
	at     map[int]int // step that each agent has entered
	stop   int         // no agent goes beyond this step
	last   int         // the end of the run
	saves  []int       // steps to be saved that some agent has still to reach, ascending
	pinned int         // a step that is saved whatever is requested; 0: there is none
	broken int         // the step inside which the run diverged
	held   int         // no agent enters this step before the stop is known
	known  chan struct{}
	leading
	gate
}

// gate keeps agents from a step at which the members may change, until it is known whether they do.
type gate struct {
	passed int // The step that an agent has passed the gate to.
	shut   int // No agent passes to this step.
	// resumed is called by resume.
	resumed func()
}

// pause keeps agents from the first step, a multiple of tau, that none has reached, until resume, and
// returns this step.
func (p *progress) pause(tau int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := max(p.passed, slices.Max(slices.Collect(maps.Values(p.at)))) + tau
	p.shut = t - t%tau
	return p.shut
}

// stopFrom ends the run here at the first step from t on that no agent has reached.
func (p *progress) stopFrom(t int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t = max(t, slices.Max(slices.Collect(maps.Values(p.at)))+1, p.passed)
	p.stop = min(p.stop, t)
	p.changed.Broadcast()
}

// resume ends pause.
func (p *progress) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = math.MaxInt
	p.resumed()
	p.changed.Broadcast()
}

// pass waits, before step t, for the end of pause or of the run. Unless may allows it, the agent passes
// to the step with commit.
func (p *progress) pass(ctx context.Context, t int, may func() bool) {
	p.wait(ctx, func() bool { return t >= p.shut && t < p.stop && t <= p.broken }, func() {
		if may() {
			p.passed = max(p.passed, t)
		}
	})
}

// commit waits, before step t, for the end of pause, and lets the agent pass if may says so.
func (p *progress) commit(ctx context.Context, t int, may func() bool) (passes bool) {
	p.wait(ctx, func() bool { return t >= p.shut && t <= p.broken }, func() {
		if passes = may(); passes {
			p.passed = max(p.passed, t)
		}
	})
	return passes
}

// watch calls f now, and from now on when resume ends a pause.
func (p *progress) watch(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumed = f
	f()
}

// wait waits while a condition holds that resume may end, and calls then, under the lock.
func (p *progress) wait(ctx context.Context, holds func() bool, then func()) {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for holds() && ctx.Err() == nil {
		p.changed.Wait()
	}
	then()
}

// leading is the step up to which absent agents may follow the members.
type leading struct {
	reached int
	changed sync.Cond // Signals that it, the stop or the step of a divergence changed.
}

// newProgress starts before step first of a run that ends at last.
func newProgress(agents []int, first, last int) *progress {
	p := &progress{at: map[int]int{}, stop: last, last: last, broken: math.MaxInt,
		held: math.MaxInt, known: make(chan struct{}), gate: gate{first, math.MaxInt, func() {}}}
	p.changed.L = &p.mu
	for _, i := range agents {
		p.at[i] = first - 1
	}
	return p
}

// approach says that a member is about to enter step t.
func (p *progress) approach(t int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lead(t)
}

// lead lets absent agents go on to step t. The caller holds the lock.
func (p *progress) lead(t int) {
	if t > p.reached {
		p.reached = t
		p.changed.Broadcast()
	}
}

// follow waits, at the head of step t, until a member gets as far. It reports whether one does: the
// run may end before, and ctx.
func (p *progress) follow(ctx context.Context, t int) bool {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.reached < t && t <= min(p.stop, p.broken) && ctx.Err() == nil {
		p.changed.Wait()
	}
	return p.reached >= t
}

// order tells an agent at the head of a step how to go on.
type order struct {
	stop  bool // the agent ends here
	save  bool // the agent leaves its state for a checkpoint
	valid bool // the head of the step belongs to the run: false only beyond a divergence
	halt  bool // the run diverged inside or before this step: the agent must not wait for others any more
}

// await is enter; if the step is held it waits until the stop is known. No hold comes between the
// check and the entry.
func (p *progress) await(ctx context.Context, i, t int) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t >= p.held {
		p.mu.Unlock()
		select {
		case <-p.known:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	return p.enter(i, t)
}

// hold keeps the agents from entering the first step that none has reached, until stopAt, and
// returns this step.
func (p *progress) hold() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = min(slices.Max(slices.Collect(maps.Values(p.at)))+1, p.stop)
	return p.held
}

// stopAt ends hold: the run stops at step t.
func (p *progress) stopAt(t int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop, p.held = t, math.MaxInt
	p.changed.Broadcast()
	close(p.known)
}

// enter records that agent i is at the head of step t. The caller holds the lock.
func (p *progress) enter(i, t int) order {
	p.at[i] = t
	p.lead(t)
	if t >= p.broken {
		return order{stop: t > p.broken, valid: t == p.broken, halt: true}
	}
	pinned := t == p.pinned && t > 0
	return order{stop: t >= p.stop, save: t == p.stop || pinned || slices.Contains(p.saves, t), valid: true}
}

// cross records that agent i has gone beyond logical time t, in a run that skips times. The first
// agent to get as far meets a request to save.
func (p *progress) cross(i, t int) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[i] = t
	if t >= p.broken {
		return order{stop: true, halt: true}
	}
	waiting := len(p.saves)
	p.saves = slices.DeleteFunc(p.saves, func(at int) bool { return at <= t })
	stop := p.stop < p.last && t >= p.stop
	return order{stop: stop, save: stop || len(p.saves) < waiting, valid: true}
}

// request asks for a checkpoint at the first step that no agent has reached; with stop, for the end
// of the run there. It returns that step. A request to save returns an earlier one that some agent
// has still to reach.
func (p *progress) request(stop bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Collect(maps.Values(p.at))
	first, last := slices.Min(at), slices.Max(at)
	p.saves = slices.DeleteFunc(p.saves, func(t int) bool { return t < first })
	if len(p.saves) > 0 && !stop {
		return p.saves[0]
	}
	t := min(last+1, p.stop)
	if stop {
		p.stop = t
		p.changed.Broadcast()
	} else {
		p.saves = append(p.saves, t)
	}
	return t
}

// diverge records that an agent diverged inside step t. The state at the head of t is complete, and
// the same in every run: agents that are behind still go there, and through their own half of t, so
// that all who diverge in it are known. diverge returns the agents that are inside t or beyond it,
// which may be waiting for messages that will not come.
func (p *progress) diverge(t int) (beyond []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = min(p.broken, t)
	p.changed.Broadcast()
	for i, at := range p.at {
		if at >= t {
			beyond = append(beyond, i)
		}
	}
	slices.Sort(beyond)
	return beyond
}

// awaitLoss waits until the run has diverged inside a step before t, and reports whether it has: ctx
// may end before.
func (p *progress) awaitLoss(ctx context.Context, t int) (lost bool) {
	p.wait(ctx, func() bool { return t <= p.broken }, func() { lost = t > p.broken })
	return lost
}

// beyond reports whether the head of step t lies behind the step inside which the run diverged: not
// all agents will get there.
func (p *progress) beyond(t int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return t > p.broken
}
