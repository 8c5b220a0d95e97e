package train

import (
	"context"
	"math"

	"fspda/train/runfolder"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// virtualTime is the driver of an asynchronous run in virtual time. Each agent has a goroutine, and
// the director plays the timeline and queues for each agent what it has to do, far ahead of where
// the agents are. Agents wait for nothing but the other end of an exchange. Iteration m of the run
// is the moment, in virtual time, at which an agent first reaches logical time m.
//
// The run's pace counts those iterations, for the director; the agents' steps are the events.
type virtualTime struct {
	r    *run
	line *simnet.Timeline
	ops  map[int]chan op // by agent of this process
}

// op is what an agent does at one event: an operation of the timeline, or a copy of its state.
type op struct {
	simnet.Op
	leave      bool
	m          int // leave: the iteration that the copy counts as
	eval, save bool
	virtual    float64 // leave: the virtual time
}

// opsAhead is how many operations may be queued for an agent. The director never deadlocks: all
// operations before the one that it waits to queue are queued already.
const opsAhead = 64

// contactBits is what an agent sends to arrange an exchange, or to decline one: its counter.
const contactBits = 64

// director is the number by which the pace knows the director.
const director = 0

func newVirtualTime(r *run, first int) *virtualTime {
	s := r.setup
	local := r.localAgents()
	r.pace = newPace([]int{director}, first, s.Config.Iterations)
	r.steps = newPace(local, 0, math.MaxInt)
	d := &virtualTime{r: r, line: s.NewTimeline(), ops: map[int]chan op{}}
	d.line.Skip(first, s.Config.Iterations)
	for _, i := range local {
		d.ops[i] = make(chan op, opsAhead)
	}
	return d
}

func (d *virtualTime) attach(*agent, *runfolder.Checkpoint) error { return nil }
func (d *virtualTime) close()                                     {}
func (d *virtualTime) overlapsGradients() bool                    { return false }
func (d *virtualTime) repeatsEvaluations() bool                   { return false }
func (d *virtualTime) snapshotLimit() int                         { return snapshot.Circulating + 1 }

// direct plays the timeline from iteration first to where the pace stops it.
func (d *virtualTime) direct(ctx context.Context, first int) {
	defer func() {
		for _, c := range d.ops {
			close(c)
		}
	}()
	queue := func(i int, o op) {
		c, local := d.ops[i]
		if !local {
			return // its process plays the same events
		}
		select {
		case c <- o:
		case <-ctx.Done():
		}
	}
	play := func(i int, o simnet.Op) { queue(i, op{Op: o}) }
	s, l := d.r.setup, d.line
	for m := first; ; m++ {
		o := d.r.pace.await(ctx, director, m)
		if m == s.Config.Iterations && m > first {
			l.Drain(play)
		}
		if eval := s.EvalAt(m); eval || o.save {
			l.Event++
			for i := range d.ops {
				queue(i, op{Op: simnet.Op{Event: l.Event}, leave: true, m: m, eval: eval, save: o.save, virtual: l.Now})
			}
		}
		if o.stop {
			return
		}
		if d.r.opt.OnStep != nil {
			d.r.opt.OnStep(m)
		}
		for l.Latest == m {
			if ctx.Err() != nil || d.r.steps.beyond(l.Event) {
				return
			}
			d.r.opt.Control.wait(ctx)
			l.Advance(play)
		}
	}
}

// run does the operations that the director queues for an agent, to the last.
func (d *virtualTime) run(ctx context.Context, a *agent, _ int) error {
	defer a.returnGradient()
	a.round.Alpha, a.round.Eta = d.r.setup.Schedule.At(0)
	for {
		var o op
		var more bool
		if len(d.ops[a.id]) == 0 {
			a.returnGradient()
		}
		select {
		case o, more = <-d.ops[a.id]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !more {
			return nil
		}
		at := d.r.steps.enter(a.id, o.Event)
		if at.halt {
			a.halt(errHalted)
		}
		if at.stop { // beyond a divergence: let the director come to its end
			continue
		}
		err := d.r.absorb(d.do(ctx, a, o), o.Event)
		a.release()
		if err != nil {
			return err
		}
	}
}

// do does one operation.
func (d *virtualTime) do(ctx context.Context, a *agent, o op) error {
	if o.leave {
		a.time = o.virtual
		return a.leave(ctx, o.Event, o.m, o.eval, o.save)
	}
	switch o.Kind {
	case simnet.Decline:
		a.exchange.ledger.Overhead += contactBits
		return nil
	case simnet.Meet:
		return d.meet(a, o)
	default:
		a.round.T = o.Step.T
		d.r.live.enter(a.id, o.Step.T)
		a.borrow()
		return d.r.setup.Async().Move(a.state, o.Step, a.round.Alpha, a.round.Eta, a.gradients.grad)
	}
}

// meet exchanges with the other end. An exchange that the network lost leaves both mailboxes empty.
func (d *virtualTime) meet(a *agent, o op) error {
	a.returnGradient()
	alg := d.r.setup.Async()
	if o.Lag > 0 {
		alg.CatchUp(a.state, o.Lag, a.round.Alpha, a.round.Eta)
	}
	x := &a.exchange
	x.ledger.Overhead += contactBits
	a.round.T = o.T
	l := x.connectTo(o.Peer)
	a.state.Send(&a.round, alg.Posts(a.state)...)
	if err := x.receive(0); err != nil || l.Received == nil {
		return err
	}
	alg.Deliver(a.state, l.Sent, l.Received, l.Mask)
	x.account()
	d.r.live.exchanged(a)
	return nil
}
