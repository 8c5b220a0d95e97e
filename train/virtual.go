package train

import (
	"context"
	"math"

	"fspda/train/runfolder"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// virtualTime is the driver of an asynchronous run in virtual time. Each agent has a goroutine, and
// the director plays the timeline and queues the operations of each agent, far ahead of the agents.
// Agents wait for nothing but the other end of an exchange. Iteration m of the run is the moment,
// in virtual time, at which an agent first reaches logical time m.
//
// The run's progress counts those iterations, for the director; the agents' steps are the events.
type virtualTime struct {
	r    *run
	line *simnet.Timeline
	ops  map[int]chan []op // operations of each agent of this process
	next map[int][]op      // the list that the director makes
}

// op is the work of an agent at one event: an operation of the timeline, or a copy of its state.
type op struct {
	simnet.Op
	leave      bool
	m          int // leave: the iteration that the copy counts as
	eval, save bool
	virtual    float64 // leave: the virtual time
}

// The director queues operations in lists, of eventsAhead events for each agent of the run. So
// agents do several steps while their vectors are in the cache, however many agents there are, and
// meet others that do the same. It never deadlocks: when it waits to queue a list, the lists of all
// agents before that are queued already, in every process.
const eventsAhead = 16

// contactBits is the size of the counter that an agent sends to arrange an exchange, or to decline
// one.
const contactBits = 64

// director is the number by which the run's progress knows the director.
const director = 0

func newVirtualTime(r *run, first int) *virtualTime {
	s := r.setup
	local := r.localAgents()
	r.progress = newProgress([]int{director}, first, r.length())
	r.steps = newProgress(local, 0, math.MaxInt)
	d := &virtualTime{r: r, line: s.NewTimeline(), ops: map[int]chan []op{}, next: map[int][]op{}}
	d.line.Skip(first, r.length())
	for _, i := range local {
		d.ops[i] = make(chan []op, 1)
	}
	return d
}

// attach takes back the mailbox of an agent that resumes, unless it holds an exchange.
func (d *virtualTime) attach(a *agent, _ *runfolder.Checkpoint) error {
	if !d.line.Clocks[a.id].Full {
		a.worker.vectors.ReleaseMailbox(a.state)
	}
	return nil
}

func (d *virtualTime) close()                   {}
func (d *virtualTime) overlapsGradients() bool  { return false }
func (d *virtualTime) repeatsEvaluations() bool { return false }
func (d *virtualTime) snapshotLimit() int       { return snapshot.Circulating + 1 }

// add adds an operation to the list of an agent. The process of another agent plays the same
// events.
func (d *virtualTime) add(i int, o op) {
	if _, local := d.ops[i]; local {
		d.next[i] = append(d.next[i], o)
	}
}

// queue queues the lists, in the order of the agents: neighbours are often near each other.
func (d *virtualTime) queue(ctx context.Context) {
	for _, a := range d.r.agents {
		if len(d.next[a.id]) == 0 {
			continue
		}
		select {
		case d.ops[a.id] <- d.next[a.id]:
		case <-ctx.Done():
		}
		d.next[a.id] = nil
	}
}

// direct plays the timeline from iteration first to the iteration at which [progress] stops it.
func (d *virtualTime) direct(ctx context.Context, first int) {
	defer func() {
		d.queue(ctx)
		for _, c := range d.ops {
			close(c)
		}
	}()
	play := func(i int, o simnet.Op) { d.add(i, op{Op: o}) }
	s, l := d.r.setup, d.line
	played := 0
	for m := first; ; m++ {
		o := d.r.progress.await(ctx, director, m)
		if m == d.r.length() && m > first {
			l.Drain(play)
		}
		if eval := s.EvalAt(m); eval || o.save {
			l.Event++
			for i := range d.ops {
				d.add(i, op{Op: simnet.Op{Event: l.Event}, leave: true, m: m, eval: eval, save: o.save, virtual: l.Now})
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
			d.r.opt.Control.Wait(ctx)
			l.Advance(play)
			if played++; played%(eventsAhead*s.Graph.N) == 0 {
				d.queue(ctx)
			}
		}
	}
}

// run does the operations that the director queues for an agent, to the last.
func (d *virtualTime) run(ctx context.Context, a *agent, _ int) error {
	defer a.releaseGradient()
	a.round.Alpha, a.round.Eta = d.r.setup.Schedule.At(0)
	for {
		var list []op
		var more bool
		if len(d.ops[a.id]) == 0 {
			a.releaseGradient()
		}
		select {
		case list, more = <-d.ops[a.id]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !more {
			return nil
		}
		for _, o := range list {
			if err := d.step(ctx, a, o); err != nil {
				return err
			}
		}
	}
}

// step does one operation unless it is beyond a divergence: then the director comes to its end.
func (d *virtualTime) step(ctx context.Context, a *agent, o op) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	at := d.r.steps.await(a.ctx, a.id, o.Event)
	if at.halt {
		a.halt(errHalted)
	}
	if at.stop {
		return nil
	}
	defer a.release()
	return d.r.absorb(d.do(ctx, a, o), o.Event)
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
		a.acquireGradient()
		if o.Step.Gossip {
			a.worker.vectors.AcquireMailbox(a.state)
			defer a.worker.vectors.ReleaseMailbox(a.state)
		}
		return d.r.setup.Traits.Asynchronous.Move(a.state, o.Step, a.round.Alpha, a.round.Eta, a.gradients.grad)
	}
}

// meet exchanges with the other end. An exchange that the network lost leaves both mailboxes empty.
// A mailbox is opened when the values are there, not before the wait.
func (d *virtualTime) meet(a *agent, o op) error {
	a.acquireGradient()
	alg := d.r.setup.Traits.Asynchronous
	if o.Lag > 0 {
		alg.CatchUp(a.state, o.Lag, a.round.Alpha, a.round.Eta)
	}
	x := &a.exchange
	x.ledger.Overhead += contactBits
	a.round.T = o.T
	l := x.connectTo(o.Peer)
	a.state.Send(&a.round, alg.Posts(a.state)...)
	if !x.arrived(0) {
		a.releaseGradient()
	}
	if err := x.receive(0); err != nil || l.Received == nil {
		return err
	}
	a.acquireGradient()
	a.worker.vectors.AcquireMailbox(a.state)
	alg.Deliver(a.state, l.Sent, l.Received, l.Mask)
	x.account()
	d.r.live.exchanged(a)
	return nil
}
