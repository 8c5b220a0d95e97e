package live

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/train/algo"
)

// Options say who an agent is, how it moves, and whom it tells.
type Options struct {
	Self, Agents int
	Neighbours   []int // ascending
	Edges        int   // of the whole graph
	Until        int   // the run is over at this logical time

	Algo       algo.Async
	Alpha, Eta float64
	Mask       dist.Mask
	Wire       dist.Values // how the values of an exchange travel; "": float32
	Seed       uint64
	Contacts   float64 // how often an agent is called in the time of a gradient, on average over the agents

	GiveUp    time.Duration // an exchange holds a mailbox for at most so long
	DropAfter time.Duration // an end that is silent for longer is dropped; 0: never
	Farewell  time.Duration // at the end of the run an end that is silent for longer is not waited for

	Board   dist.Switchboard
	State   *algo.State
	Buffers device.Vector // of batch norm, for those who join; nil: none
	Log     *zap.Logger

	// Gradient writes the gradient of the next batch at x to dst. When ctx ends it is of no use any
	// more: the next call is for the same batch.
	Gradient func(ctx context.Context, dst, x device.Vector) error
	// Applied is called when the agent has moved by the latest gradient: its batch is done with.
	Applied func()
	// Passed is called when the logical time has grown, and at the start. What it is shown holds
	// until it returns, and so do the vectors of the State. It tells whether the agent has to stop
	// there.
	Passed func(View) (stop bool)
	// Ended is called when the agent has come to the end of the run and moves no more, as Passed
	// is.
	Ended func(View)
	// Spoke is called for each exchange, with how many values this end sent.
	Spoke func(peer, values int)
	// Called is called for each call to an exchange, whatever became of it.
	Called func()
}

// View is where an agent stands, beside its vectors.
type View struct {
	Desk  algo.Desk
	Edges []EdgeView // in the order of Options.Neighbours
}

// EdgeView is where an edge stands.
type EdgeView struct {
	Peer  int
	Dual  algo.EdgeDual
	Fresh bool // nothing is known of the edge, not even that it never was used
}

// Agent is one end of the protocol. Its vectors are those of Options.State.
type Agent struct {
	opt   Options
	state *algo.State
	dev   device.Device
	pool  *dist.Pool
	x     device.Vector // at which the running gradient is taken

	finished atomic.Int64 // the number of the latest gradient that is finished

	mu      sync.Mutex // of all below, of the state, and of the duals of the edges
	desk    algo.Desk
	edges   []*edge
	busy    *edge // whose exchange keeps the mailbox free; nil: none
	joining bool
	stopped bool // by Passed
	frozen  bool // the last state is taken: nothing moves any more
	number  int  // of the running gradient
	abort   context.CancelFunc
	pace    time.Duration // of a gradient, a moving mean; 0: not known yet
	news    chan struct{} // closed, and replaced, when anything changes that somebody may wait for

	aside sync.WaitGroup
	quit  context.CancelFunc
}

const (
	defaultGiveUp   = 5 * time.Second
	defaultFarewell = 10 * time.Second
)

// New makes an agent that has no past. Restore gives it one.
func New(opt Options) *Agent {
	a := &Agent{opt: opt, state: opt.State, dev: opt.State.Dev, pool: dist.NewPool(opt.State.Dev),
		news: make(chan struct{}), joining: true,
		x: opt.State.Dev.NewVector(opt.State.X.Len())}
	a.finished.Store(-1)
	a.opt.GiveUp, a.opt.Farewell = cmp.Or(opt.GiveUp, defaultGiveUp), cmp.Or(opt.Farewell, defaultFarewell)
	if a.opt.Log == nil {
		a.opt.Log = zap.NewNop()
	}
	for _, peer := range opt.Neighbours {
		lo, hi := min(opt.Self, peer), max(opt.Self, peer)
		e := &edge{a: a, peer: peer, fresh: true, clock: rng.New(opt.Seed, "live-edge", uint64(lo), uint64(hi))}
		e.dual.S = a.dev.NewVector(opt.State.X.Len())
		a.edges = append(a.edges, e)
	}
	return a
}

// Restore puts an agent where a checkpoint was made. The vectors of the edges' duals are copied.
func (a *Agent) Restore(v View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.desk, a.joining = v.Desk, false
	for i, e := range a.edges {
		was := v.Edges[i]
		e.fresh, e.dual.Epoch, e.dual.N = was.Fresh, was.Dual.Epoch, was.Dual.N
		a.dev.Gather(e.dual.S, was.Dual.S, nil)
	}
}

// Run computes until the run is over, the agent is stopped by Passed, or ctx ends. Then its vectors
// stand still. Its edges go on to answer others until Close.
func (a *Agent) Run(ctx context.Context) error {
	talks, quit := context.WithCancel(context.WithoutCancel(ctx))
	a.quit = quit
	for _, e := range a.edges {
		a.aside.Go(func() { e.serve(talks) })
	}
	if a.opt.DropAfter > 0 {
		a.aside.Go(func() { a.watch(talks) })
	}
	if err := a.join(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	a.passed()
	a.mu.Unlock()
	for {
		more, err := a.compute(ctx)
		if err != nil || ctx.Err() != nil {
			a.freeze()
			return cause(ctx, err)
		}
		if !more {
			break
		}
	}
	return a.end(ctx)
}

func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close ends all talks.
func (a *Agent) Close() {
	if a.quit != nil {
		a.quit()
	}
	a.aside.Wait()
}

// compute takes one gradient, and applies it unless it was cancelled meanwhile. more is false when
// there is none to be taken.
func (a *Agent) compute(ctx context.Context) (more bool, err error) {
	a.mu.Lock()
	if a.stopped || a.over() {
		a.mu.Unlock()
		return false, nil
	}
	ctx, a.abort = context.WithCancel(ctx)
	defer a.abort()
	a.number++
	number := a.number
	a.dev.Gather(a.x, a.state.X, nil)
	a.mu.Unlock()
	begin := time.Now()
	err = a.opt.Gradient(ctx, a.state.Gradient(), a.x)
	took := time.Since(begin)
	if err == nil {
		a.finished.Store(int64(number))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.number != number {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	a.learn(took)
	a.step(true)
	return true, nil
}

// learn keeps the mean time of a gradient.
func (a *Agent) learn(took time.Duration) {
	took = max(took, time.Microsecond)
	if a.pace == 0 {
		a.pace = took
		return
	}
	a.pace += (took - a.pace) / 8
}

// step is the end of a gradient, or a gossip step without one. The caller holds the lock.
func (a *Agent) step(gradient bool) {
	st := a.opt.Algo.Finish(&a.desk, gradient)
	taken := func(_, _ device.Vector) error { return nil } // it stands in the state's own vector
	if err := a.opt.Algo.Move(a.state, st, a.opt.Alpha, a.opt.Eta, taken); err != nil {
		panic("live: a step that cannot fail: " + err.Error())
	}
	if gradient {
		a.number++ // it is not applied twice
		a.opt.Applied()
	}
	a.passed()
}

// passed tells that the logical time has grown. The caller holds the lock.
func (a *Agent) passed() {
	if a.opt.Passed != nil && !a.stopped && a.opt.Passed(a.view()) {
		a.stopped = true
		a.interrupt()
	}
	if a.stopped || a.over() {
		a.tell()
	}
}

func (a *Agent) view() View {
	v := View{Desk: a.desk}
	for _, e := range a.edges {
		v.Edges = append(v.Edges, EdgeView{Peer: e.peer, Dual: e.dual, Fresh: e.fresh})
	}
	return v
}

// over tells whether the agent is at the end of the run. The caller holds the lock.
func (a *Agent) over() bool { return a.desk.T >= a.opt.Until }

// interrupt cancels the running gradient. One that is finished and only waits for the lock is
// applied first. The caller holds the lock.
func (a *Agent) interrupt() {
	if int(a.finished.Load()) == a.number && !a.stopped {
		a.step(true)
	}
	a.number++
	if a.abort != nil {
		a.abort()
	}
}

// catchUp brings an agent that is behind to logical time t, and tells whether it was. The caller
// holds the lock.
func (a *Agent) catchUp(t int) bool {
	if a.desk.T >= t {
		return false
	}
	a.interrupt()
	if a.desk.T >= t {
		return false
	}
	a.opt.Algo.Return(a.state, &a.desk, t, a.opt.Eta)
	a.passed()
	return true
}

// gossip reads the mailbox at once, without a gradient. The caller holds the lock.
func (a *Agent) gossip() {
	a.interrupt()
	if a.desk.Full { // not if a gradient has read it just now
		a.step(false)
	}
}

// tell wakes all who wait. The caller holds the lock.
func (a *Agent) tell() {
	close(a.news)
	a.news = make(chan struct{})
}

// await waits until done says so, which is asked again after every change and every so often. It
// returns the context's cause if that ends first.
func (a *Agent) await(ctx context.Context, every time.Duration, done func() bool) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		a.mu.Lock()
		ok, news := done(), a.news
		a.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-news:
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// freeze ends all movement.
func (a *Agent) freeze() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frozen = true
	a.number++
}

// end waits until all edges are closed, and reads the mailbox.
func (a *Agent) end(ctx context.Context) error {
	if a.stopped {
		a.freeze()
		return nil
	}
	err := a.await(ctx, a.opt.Farewell/8, func() bool {
		for _, e := range a.edges {
			if !e.closed() && a.opt.Board.Silent(e.peer) < a.opt.Farewell {
				return false
			}
		}
		return true
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && a.desk.Full {
		a.step(false)
	}
	a.frozen = true
	if err == nil && a.opt.Ended != nil {
		a.opt.Ended(a.view())
	}
	return err
}
