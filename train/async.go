package train

import (
	"context"
	"errors"
	"math"

	"fspda/train/simnet"
)

// An asynchronous run has one goroutine for each agent, and a director that plays the timeline and
// tells each what to do, far ahead of where they are. Agents wait for nobody but the other end of
// an exchange. Iteration m of the run is the moment, in virtual time, in which an agent first
// reaches logical time m.

// ahead is how many operations may wait for an agent. Whatever the director waits for can go on:
// all that precedes it was told.
const ahead = 64

// contactBits is what an agent sends to arrange an exchange, or to decline one: its counter.
const contactBits = 64

// schedule makes the timeline of an asynchronous run, at iteration first.
func (r *run) schedule(first int) {
	s := r.setup
	if s.method.Edges != Clocks || s.RealTime() {
		return
	}
	r.pace = newPace(1, first, s.Config.Iterations)
	r.events = newPace(s.Graph.N, 0, math.MaxInt)
	r.line = s.NewTimeline()
	r.line.Skip(first, s.Config.Iterations)
	r.lostAt = math.MaxInt
	r.ops = make([]chan op, s.Graph.N)
	for i := range r.ops {
		if r.member == nil || i == r.member.rank {
			r.ops[i] = make(chan op, ahead)
		}
	}
}

// walker is what an agent's goroutine does.
func (r *run) walker(a *agent) func(ctx context.Context, first int) error {
	switch {
	case r.setup.RealTime():
		return a.live
	case r.line == nil:
		return a.walk
	}
	return func(ctx context.Context, _ int) error { return a.follow(ctx, r.ops[a.id]) }
}

// direct plays the timeline from iteration first to wherever the pace says stop.
func (r *run) direct(ctx context.Context, first int) {
	defer func() {
		for _, c := range r.ops {
			if c != nil {
				close(c)
			}
		}
	}()
	s, l := r.setup, r.line
	tell := func(i int, o op) {
		if r.ops[i] == nil {
			return // in another process, which plays the same events
		}
		select {
		case r.ops[i] <- o:
		case <-ctx.Done():
		}
	}
	play := func(i int, o simnet.Op) { tell(i, op{Op: o}) }
	for m := first; ; m++ {
		o := r.pace.enter(0, m)
		if m == s.Config.Iterations && m > first {
			l.Drain(play)
		}
		if eval := s.EvalAt(m); eval || o.save {
			l.Event++
			for i := range r.ops {
				tell(i, op{Op: simnet.Op{Event: l.Event}, leave: true, m: m, eval: eval, save: o.save, virtual: l.Now})
			}
		}
		if o.stop {
			return
		}
		if r.opt.OnStep != nil {
			r.opt.OnStep(m)
		}
		for l.Latest == m {
			if ctx.Err() != nil || r.events.beyond(l.Event) {
				return
			}
			r.opt.Control.wait(ctx)
			l.Advance(play)
		}
	}
}

// follow does what the director says, to its end.
func (a *agent) follow(ctx context.Context, ops <-chan op) error {
	defer a.loader.Close()
	s := a.run.setup
	a.round.Alpha, a.round.Eta = s.Schedule.At(0)
	for {
		var o op
		var more bool
		select {
		case o, more = <-ops:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !more {
			return nil
		}
		a.event = o.Event
		at := a.run.events.enter(a.id, o.Event)
		if at.alone {
			a.halt(errHalted)
		}
		if at.stop { // beyond a divergence: let the director come to its end
			continue
		}
		err := a.do(ctx, o)
		a.letGo()
		var d *DivergedError
		switch {
		case errors.As(err, &d):
			a.run.divergedAt(o.Event, d)
		case errors.Is(err, errHalted):
		case err != nil:
			return err
		}
	}
}

// do is one operation.
func (a *agent) do(ctx context.Context, o op) error {
	if o.leave {
		return a.leaveAt(ctx, o)
	}
	switch o.Kind {
	case simnet.Decline:
		a.ledger.Overhead += contactBits
		return nil
	case simnet.Meet:
		return a.meet(o)
	default:
		a.round.T = o.Step.T
		a.run.opt.Watch.enter(a.id, o.Step.T)
		return a.run.setup.Async().Move(a.state, o.Step, a.round.Alpha, a.round.Eta, a.grad)
	}
}

// meet exchanges with the other end. An exchange that the network lost leaves both mailboxes with
// nothing in them.
func (a *agent) meet(o op) error {
	s, alg := a.run.setup, a.run.setup.Async()
	if o.Lag > 0 {
		alg.CatchUp(a.state, o.Lag, a.round.Eta)
	}
	a.ledger.Overhead += contactBits
	a.round.T, a.round.Links = o.T, a.round.Links[:0]
	if s.Mask.Dense() {
		a.link(o.Peer, nil, s.Dim, 0, 0)
	} else {
		a.growMasks(0)
		a.coords = s.Mask.Draw(a.coords, o.T, a.id, o.Peer)
		a.masks[0] = a.dev.NewIndex(a.coords, a.masks[0])
		a.link(o.Peer, a.masks[0], len(a.coords), 0, 0)
	}
	a.state.Send(&a.round, a.state.X)
	l := &a.round.Links[0]
	if err := a.hear(l); err != nil || l.Received == nil {
		return err
	}
	alg.Deliver(a.state, l.Sent[0], l.Received[0], l.Mask)
	a.account()
	a.run.opt.Watch.exchanged(a)
	return nil
}

// leaveAt is leave at a virtual time.
func (a *agent) leaveAt(ctx context.Context, o op) error {
	a.time = o.virtual
	return a.leave(ctx, o.m, o.eval, o.save)
}

// divergedAt records a divergence by its event. The earliest counts.
func (r *run) divergedAt(event int, d *DivergedError) {
	for _, i := range r.events.diverge(event) {
		r.agents[i].halt(errHalted)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if event < r.lostAt {
		r.lost, r.lostAt = d, event
	}
}

// op is what an agent does at one event: an operation of the timeline, or a copy of its state for
// the collector.
type op struct {
	simnet.Op
	leave      bool
	m          int // leave: the iteration that the copy counts as
	eval, save bool
	virtual    float64 // leave: the virtual time
}
