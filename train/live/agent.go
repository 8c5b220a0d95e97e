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

	Algo       algo.RealTime
	Alpha, Eta float64
	Mask       dist.Mask
	Format     dist.ValueFormat // format of the values of an exchange; "": float32
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
	Exchange time.Duration // the longest time for which an exchange may reserve the mailbox; by default 5 s
	Drop     time.Duration // the edge of an agent that is silent for longer is dropped; 0: never
	// Finish is used without Drop: at the end of the run, an agent silent for longer is not awaited. By
	// default 10 s.
	Finish time.Duration
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
	// snapshot and the vectors of Options.State are valid until it returns. The agent stops if stop
	// is true.
	Advanced(Snapshot) (stop bool)
	// Finished reports that the agent has reached the end of the run and does not move any more.
	// The snapshot is valid until it returns.
	Finished(Snapshot)
	// Exchanged reports an exchange and the number of values that this end sent to the peer in it.
	// It is called when this end commits the exchange, or learns later that it counts.
	Exchanged(peer, values int)
	// Called reports a call to an exchange, made or received, whatever its outcome.
	Called()
}

// Snapshot is the state of an agent without its vectors. It is valid only within the call that
// passes it.
type Snapshot struct {
	Clock algo.LogicalClock
	Edges []EdgeSnapshot // edges in the order of Options.Neighbours
}

// EdgeSnapshot is the state of an edge.
type EdgeSnapshot struct {
	Peer  int
	Dual  algo.EdgeDual
	Fresh bool // nothing is known of the edge: its history is lost, or it has none
}

// Agent runs one agent: it computes gradients and exchanges values over its edges. Its vectors are
// in Options.State.
type Agent struct {
	opt   Options
	state *algo.State
	dev   device.Device
	pool  *dist.Pool
	x     device.Vector // the model at which the current gradient is computed

	lastFinished atomic.Int64 // ID of the latest gradient that was computed

	mu             sync.Mutex // guards everything below, the state, and the duals of the edges
	clock          algo.LogicalClock
	edges          []*edge
	reservedBy     *edge // the edge whose exchange reserves the mailbox; nil: none
	joining        bool
	stopped        bool // set when Trainer.Advanced has stopped the agent
	frozen         bool // the agent does not move any more
	final          bool // it is frozen, and its state was reported as the state at the end of the run
	gradientID     int  // number of the current gradient
	cancelGradient context.CancelFunc
	gradientTime   time.Duration // moving mean of the time of a gradient; 0: unknown
	changed        chan struct{} // closed and replaced whenever the state changes

	background     sync.WaitGroup
	cancelSessions context.CancelFunc
}

const (
	defaultExchangeTimeout = 5 * time.Second
	defaultFinishTimeout   = 10 * time.Second
)

// New returns an agent without history. Restore gives it one.
func New(opt Options) *Agent {
	a := &Agent{opt: opt, state: opt.State, dev: opt.State.Dev, pool: dist.NewPool(opt.State.Dev),
		changed: make(chan struct{}), joining: true, x: opt.State.Dev.NewVector(opt.State.X.Len())}
	a.lastFinished.Store(-1)
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

// Restore sets an agent to a checkpoint. It copies the vectors of the edges' duals.
func (a *Agent) Restore(v Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock, a.joining = v.Clock, false
	a.final = a.atEnd() // an earlier process has reported this state
	a.frozen = a.final
	for i, e := range a.edges {
		was := v.Edges[i]
		e.fresh, e.dual.Epoch, e.dual.N = was.Fresh, was.Dual.Epoch, was.Dual.N
		a.dev.Do(device.Gather(e.dual.S, was.Dual.S, nil))
	}
}

// Run computes until the run ends, Trainer.Advanced stops it, or ctx ends. Then its vectors do not
// change any more. Its edges answer other agents until Close.
func (a *Agent) Run(ctx context.Context) error {
	sessions, quit := context.WithCancel(context.WithoutCancel(ctx))
	a.cancelSessions = quit
	for _, e := range a.edges {
		a.background.Go(func() { e.serve(sessions) })
	}
	if a.opt.Timeouts.Drop > 0 {
		a.background.Go(func() { a.dropSilentPeers(sessions) })
	}
	if err := a.join(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	a.advanced()
	a.mu.Unlock()
	for {
		more, err := a.compute(ctx)
		if err != nil || ctx.Err() != nil {
			a.mu.Lock()
			a.freeze()
			a.mu.Unlock()
			return contextCause(ctx, err)
		}
		if !more {
			break
		}
	}
	return a.finish(ctx)
}

func contextCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close ends all sessions.
func (a *Agent) Close() {
	if a.cancelSessions != nil {
		a.cancelSessions()
	}
	a.background.Wait()
}

// compute computes one gradient, and applies it unless it was cancelled meanwhile. more is false if
// the agent needs no gradient any more.
func (a *Agent) compute(ctx context.Context) (more bool, err error) {
	a.mu.Lock()
	if a.stopped || a.atEnd() {
		a.mu.Unlock()
		return false, nil
	}
	ctx, a.cancelGradient = context.WithCancel(ctx)
	defer a.cancelGradient()
	a.gradientID++
	number := a.gradientID
	a.dev.Do(device.Gather(a.x, a.state.X, nil))
	a.mu.Unlock()
	begin := time.Now()
	err = a.opt.Trainer.Gradient(ctx, a.state.Gradient(), a.x)
	took := time.Since(begin)
	if err == nil {
		a.lastFinished.Store(int64(number))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gradientID != number {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	a.recordGradientTime(took)
	a.step(true)
	return true, nil
}

// recordGradientTime updates the moving mean of the time of a gradient.
func (a *Agent) recordGradientTime(took time.Duration) {
	took = max(took, time.Microsecond)
	if a.gradientTime == 0 {
		a.gradientTime = took
		return
	}
	a.gradientTime += (took - a.gradientTime) / 8
}

// step ends a local step with a gradient, or a gossip step without one. The caller holds the lock.
func (a *Agent) step(gradient bool) {
	st := a.opt.Algo.Finish(&a.clock, gradient)
	taken := func(_, _ device.Vector) error { return nil } // it is already in the state's vector
	if err := a.opt.Algo.Move(a.state, st, a.opt.Alpha, a.opt.Eta, taken); err != nil {
		panic("live: an operation that cannot fail has failed: " + err.Error())
	}
	if gradient {
		a.gradientID++ // prevents that it is applied twice
		a.opt.Trainer.Applied()
	}
	a.advanced()
}

// advanced reports that the logical time has grown. The caller holds the lock.
func (a *Agent) advanced() {
	if !a.stopped && a.opt.Trainer.Advanced(a.snapshot()) {
		a.stopped = true
		a.interrupt()
	}
	if a.stopped || a.atEnd() {
		a.notify()
	}
}

func (a *Agent) snapshot() Snapshot {
	v := Snapshot{Clock: a.clock}
	for _, e := range a.edges {
		v.Edges = append(v.Edges, EdgeSnapshot{Peer: e.peer, Dual: e.dual, Fresh: e.fresh})
	}
	return v
}

// atEnd reports whether the agent has reached the end of the run. The caller holds the lock.
func (a *Agent) atEnd() bool { return a.clock.T >= a.opt.Until }

// interrupt cancels the current gradient. A gradient that is complete and waits for the lock is
// applied first. The caller holds the lock.
func (a *Agent) interrupt() {
	if int(a.lastFinished.Load()) == a.gradientID && !a.stopped {
		a.step(true)
	}
	a.gradientID++
	if a.cancelGradient != nil {
		a.cancelGradient()
	}
}

// advanceTo advances an agent that is behind to logical time t, and reports whether it was behind.
// The caller holds the lock.
func (a *Agent) advanceTo(t int) bool {
	if a.clock.T >= t {
		return false
	}
	a.interrupt()
	if a.clock.T >= t {
		return false
	}
	a.opt.Algo.Rejoin(a.state, &a.clock, t, a.opt.Eta)
	a.advanced()
	return true
}

// applyMailbox applies the mailbox at once, without a gradient. The caller holds the lock.
func (a *Agent) applyMailbox() {
	a.interrupt()
	if a.clock.Full { // false if a gradient step has just applied it
		a.step(false)
	}
}

// notify wakes all waiting goroutines. The caller holds the lock.
func (a *Agent) notify() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until done returns true. It calls done after every change and at the given interval.
// If the context ends first, it returns its cause.
func (a *Agent) await(ctx context.Context, every time.Duration, done func() bool) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		a.mu.Lock()
		ok, changed := done(), a.changed
		a.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// freeze ends all movement. The caller holds the lock.
func (a *Agent) freeze() {
	a.frozen = true
	a.gradientID++
}

// finish waits until all edges are closed, and applies the mailbox, unless Trainer.Advanced stops
// the agent: an exchange may advance it meanwhile.
func (a *Agent) finish(ctx context.Context) error {
	err := a.await(ctx, a.opt.Timeouts.Finish/8, func() bool {
		if a.stopped {
			return true
		}
		for _, e := range a.edges {
			gone := a.opt.Timeouts.Drop == 0 && a.opt.Network.SilentFor(e.peer) >= a.opt.Timeouts.Finish
			if !e.closed() && !gone && !a.final {
				return false
			}
		}
		return true
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		a.freeze()
		return nil
	}
	if err == nil && a.clock.Full {
		a.step(false)
	}
	a.frozen, a.final = true, err == nil
	if a.final {
		a.opt.Trainer.Finished(a.snapshot())
	}
	return err
}
