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

// Options configure an [Agent].
type Options struct {
	Self, Agents int
	Neighbours   []int // ascending
	Edges        int   // number of edges of the whole graph
	Until        int   // logical time at which the run ends

	Algo       algo.Async
	Alpha, Eta float64
	Mask       dist.Mask
	Format     dist.ValueFormat // of the values of an exchange; "": float32
	Seed       uint64
	CallRate   float64 // mean number of calls to an agent in the time of one gradient

	Timeouts Timeouts
	Network  dist.SessionOpener
	State    *algo.State
	Buffers  device.Vector // running statistics of batch norm, sent to agents that join; nil: none
	Trainer  Trainer
	Log      *zap.Logger
}

// Timeouts are the limits after which an agent stops waiting for another one. 0 is the default.
type Timeouts struct {
	Exchange time.Duration // how long an exchange may reserve the mailbox; by default 5 s
	Drop     time.Duration // the edge of an agent that is silent for longer is dropped; 0: never
	Finish   time.Duration // at the end of the run, an agent silent for longer is not awaited; by default 10 s
}

// Trainer computes the gradients of an [Agent] and is told about its progress. The agent calls
// Gradient without its lock and all other methods with it, so they must return soon and must not
// call the agent.
type Trainer interface {
	// Gradient writes the gradient of the next batch at x to dst. If ctx ends before Gradient
	// returns, the result is discarded and the next call is for the same batch.
	Gradient(ctx context.Context, dst, x device.Vector) error
	// Applied reports that the latest gradient was applied, so that its batch is used up.
	Applied()
	// Advanced reports that the logical time has grown. It is also called once at the start. The
	// view and the vectors of Options.State are valid until it returns. The agent stops if stop is
	// true.
	Advanced(View) (stop bool)
	// Finished reports that the agent has reached the end of the run and does not move any more.
	// The view is valid until it returns.
	Finished(View)
	// Exchanged reports an exchange in which this end sent so many values to a peer.
	Exchanged(peer, values int)
	// Called reports a call to an exchange, made or received, whatever its outcome.
	Called()
}

// View is where an agent stands, beside its vectors.
type View struct {
	Desk  algo.LogicalClock
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
	desk    algo.LogicalClock
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
	defaultExchangeTimeout = 5 * time.Second
	defaultFinishTimeout   = 10 * time.Second
)

// New makes an agent that has no past. Restore gives it one.
func New(opt Options) *Agent {
	a := &Agent{opt: opt, state: opt.State, dev: opt.State.Dev, pool: dist.NewPool(opt.State.Dev),
		news: make(chan struct{}), joining: true,
		x: opt.State.Dev.NewVector(opt.State.X.Len())}
	a.finished.Store(-1)
	a.opt.Timeouts.Exchange = cmp.Or(opt.Timeouts.Exchange, defaultExchangeTimeout)
	a.opt.Timeouts.Finish = cmp.Or(opt.Timeouts.Finish, defaultFinishTimeout)
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
	if a.opt.Timeouts.Drop > 0 {
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
	err = a.opt.Trainer.Gradient(ctx, a.state.Gradient(), a.x)
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
		a.opt.Trainer.Applied()
	}
	a.passed()
}

// passed tells that the logical time has grown. The caller holds the lock.
func (a *Agent) passed() {
	if !a.stopped && a.opt.Trainer.Advanced(a.view()) {
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
	a.opt.Algo.Rejoin(a.state, &a.desk, t, a.opt.Eta)
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
	err := a.await(ctx, a.opt.Timeouts.Finish/8, func() bool {
		for _, e := range a.edges {
			if !e.closed() && a.opt.Network.SilentFor(e.peer) < a.opt.Timeouts.Finish {
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
	if err == nil {
		a.opt.Trainer.Finished(a.view())
	}
	return err
}
