package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"fspda/device"
	"fspda/train/algo"
	"fspda/train/membership"
	"fspda/train/runfolder"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// lossLimit is the local training loss above which a run counts as diverged.
const lossLimit = 1e5

// agent is one agent of the run. A [driver] steps it through its iterations. Only the goroutine
// that the driver runs for it may touch it.
type agent struct {
	*core
	state     *algo.State
	stages    []algo.Stage // parts of an iteration that each post the messages of one exchange
	gradients gradients
	exchange  exchange
	snapshots *snapshot.Pool
	lends     bool    // snapshots refer to the agent's vectors
	time      float64 // virtual time at the head of this iteration, in seconds or mean gradients
}

// core holds the fields that the parts of an agent share.
type core struct {
	id     int
	run    *run
	worker *worker
	dev    device.Device   // device of the worker
	ctx    context.Context // context of exchanges and waits: canceled when they can no longer succeed
	halt   context.CancelCauseFunc
	clock  clock
	round  algo.Round
	number int // number of the exchange in this iteration, from 0
	membership.Leaving
}

// place is the place of the present exchange in the run.
func (c *core) place() membership.Exchange { return membership.Exchange{T: c.round.T, K: c.number} }

// clock is an agent's virtual time in a synchronous run: a [simnet.Clock] or a [simnet.NoClock].
type clock interface {
	Gradient(k int)
	Post(t, peer int, bits float64) (arrives float64)
	Receive(arrives float64)
	Await()  // waits until everything received has arrived
	Depart() // says that the messages posted in this iteration are awaited in a later one
	Due()    // says that they are awaited now
	End() float64
	State() simnet.ClockState
	Restore(simnet.ClockState)
}

// newAgent makes agent id with the first model of the run, for iteration t. Its first batch is the
// batch of step first.
func newAgent(r *run, id, t, first int) (*agent, error) {
	s := r.setup
	loader, err := s.Loader(id, t, first)
	if err != nil {
		return nil, err
	}
	w := r.workerOf(id)
	c := &core{id: id, run: r, worker: w, dev: w.Device, ctx: context.Background(), halt: func(error) {},
		clock: simnet.NoClock{}, Leaving: r.group.leaving()}
	if s.HasClocks() {
		c.clock = s.NewClock(id)
	}
	a := &agent{core: c, state: w.vectors.NewState(c.dev.NewVector(s.Dim)), stages: algo.Stages(s.Algo),
		snapshots: r.snapshotPools[id], lends: r.lends()}
	a.gradients = gradients{core: c, batches: batches{loader: loader}}
	a.gradients.init(r.driver.overlapsGradients())
	a.exchange = exchange{core: c}
	a.exchange.init()
	a.exchange.weigh(t)
	c.round.Self, c.round.Grad, c.round.NextBatch = id, a.gradients.grad, a.gradients.release
	if a.lends {
		a.snapshots.Lend(&snapshot.Snapshot{Device: c.dev})
	} else {
		a.snapshots.Fill(a.newSnapshot)
	}
	return a, nil
}

// acquireGradient gives the agent a vector for gradients. The agent keeps it over several steps,
// since its other vectors are in the processor's cache now.
func (a *agent) acquireGradient() { a.worker.vectors.AcquireGradient(a.state) }

// releaseGradient is called before the agent waits for others.
func (a *agent) releaseGradient() { a.worker.vectors.ReleaseGradient(a.state) }

// newSnapshot allocates a snapshot on the agent's device.
func (a *agent) newSnapshot() *snapshot.Snapshot { return a.newSnapshotOf(a.id) }

// newSnapshotOf allocates a snapshot of an agent, which may be in another process, on the device of
// a: the agents differ in their edges alone.
func (a *agent) newSnapshotOf(id int) *snapshot.Snapshot {
	s := a.run.setup
	return snapshot.New(a.dev, a.state, s.BufferLen(), algo.NewEdges(s.Algo, a.dev, s.Dim, s.Graph.Neighbours(id)))
}

// release returns the buffers, masks and vectors that the agent borrowed for an iteration.
func (a *agent) release() {
	a.exchange.release()
	a.gradients.release()
}

// leave copies the agent's state at the head of iteration t into a snapshot and delivers it; or
// lends it, and waits until it has been evaluated and saved. step is the agent's position, as the
// driver counts it.
func (a *agent) leave(ctx context.Context, step, t int, eval, save bool) error {
	a.releaseGradient()
	if err := a.gradients.drain(0); err != nil {
		return err
	}
	sn, err := a.snapshots.Acquire(a.ctx)
	if err != nil {
		if ctx.Err() != nil || a.run.steps.beyond(step) {
			return err
		}
		// The run diverged inside t: its head still counts, but nobody may be left to release a
		// snapshot.
		sn = a.newSnapshot()
	}
	a.copyTo(sn, t, eval, save)
	sn.Decodes, sn.Scale, sn.Time = a.exchange.codec.decodes, a.gradients.scale, a.time
	sn.Clock, sn.Step = a.clock.State(), step
	if a.gradients.buffers != nil && !a.lends {
		a.dev.Do(device.Gather(sn.Buffers, a.gradients.buffers, nil))
	}
	if err := a.run.group.Deliver(ctx, sn); err != nil || !a.lends {
		return err
	}
	// The other agents leave their snapshots at t before one can diverge beyond it: the set becomes
	// complete, or this agent is halted.
	return a.snapshots.AwaitReturn(a.ctx)
}

// copyTo copies vectors and counters to a snapshot, or lends it the vectors. The meter is copied
// before it is reset: a run that resumes from a checkpoint repeats the row.
func (a *agent) copyTo(sn *snapshot.Snapshot, t int, eval, save bool) {
	sn.Agent, sn.T, sn.Eval, sn.Save, sn.Missing = a.id, t, eval, save, !a.run.setup.Members.Present(a.id, t)
	sn.Awaited = a.run.setup.Members.Awaited(a.id, t)
	sn.Ledger, sn.Grads, sn.Losses = a.exchange.ledger, a.gradients.count, a.gradients.meter
	sn.Clipped, sn.Directions = a.gradients.clipped, a.state.Count
	sn.Scalars = append(sn.Scalars[:0], a.state.Scalars...)
	if eval {
		a.gradients.meter = snapshot.Losses{}
	}
	if a.lends {
		sn.X, sn.Aux, sn.Edges, sn.Buffers = a.state.X, a.state.Aux, a.state.Edges, a.gradients.buffers
		return
	}
	for i, e := range a.state.Edges { // an evaluation that is abandoned leaves a checkpoint, too
		e.CopyTo(a.dev, sn.Edges[i])
	}
	a.dev.Do(device.Gather(sn.X, a.state.X, nil))
	for i, v := range a.state.Aux {
		a.dev.Do(device.Gather(sn.Aux[i], v, nil))
	}
}

// finish drains the pending losses of an agent whose run ended with err: it may have diverged
// before the cause of err.
func (a *agent) finish(ctx context.Context, err error) error {
	a.releaseGradient()
	late := a.gradients.drain(0)
	a.gradients.discard()
	var d *DivergedError
	switch {
	case errors.As(late, &d):
		a.run.diverged(d)
	case err == nil && ctx.Err() == nil:
		return late
	}
	return err
}

// errHalted ends the waits of an agent whose run diverged elsewhere.
var errHalted = errors.New("train: halted")

// DivergedError reports an agent whose training loss exceeded the limit or is not a number.
type DivergedError struct {
	Agent, T int
	Event    int // number of the event in virtual time; else 0
	Loss     float64
	Cause    error // the failure that led to the divergence; nil if it is not known
	// elsewhere says that another process than the agent's has found it, and tells the others.
	elsewhere bool
}

// step is the step of the agent that diverged, as its driver counts.
func (e *DivergedError) step() int { return cmp.Or(e.Event, e.T) }

// before reports whether e is earlier than o.
func (e *DivergedError) before(o *DivergedError) bool {
	return cmp.Or(cmp.Compare(e.step(), o.step()), cmp.Compare(e.Agent, o.Agent)) < 0
}

func (e *DivergedError) Unwrap() error { return e.Cause }

func (e *DivergedError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("train: diverged: agent %d in iteration %d: %v", e.Agent, e.T, e.Cause)
	}
	return fmt.Sprintf("train: diverged: the training loss of agent %d in iteration %d is %g (limit %g): "+
		"lower alpha, or check eta, gamma and momentum", e.Agent, e.T, e.Loss, lossLimit)
}

// ExitCode returns 3, the exit status for a run that diverged.
func (e *DivergedError) ExitCode() int { return 3 }

func (a *agent) restore(ck *runfolder.Checkpoint) error {
	a.worker.vectors.AcquireMailbox(a.state)
	sn := snapshot.Snapshot{Agent: a.id, Device: a.dev, X: a.state.X, Aux: a.state.Aux, Edges: a.state.Edges,
		Buffers: a.gradients.buffers}
	if err := ck.Restore(&sn); err != nil {
		return err
	}
	a.exchange.ledger, a.exchange.codec.decodes = sn.Ledger, sn.Decodes
	a.gradients.count, a.gradients.meter, a.gradients.scale = sn.Grads, sn.Losses, sn.Scale
	a.gradients.clipped, a.state.Count = sn.Clipped, sn.Directions
	if len(sn.Scalars) != len(a.state.Scalars) {
		return ck.Damaged(fmt.Sprintf("it has %d numbers of agent %d beside its vectors, want %d", len(sn.Scalars),
			a.id, len(a.state.Scalars)))
	}
	copy(a.state.Scalars, sn.Scalars)
	a.clock.Restore(sn.Clock)
	a.time = sn.Clock.At
	return nil
}
