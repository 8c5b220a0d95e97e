package train

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"fspda/train/council"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

// synchronous is the driver of algorithms in which all agents count iterations alike. Each agent
// runs ahead until an iteration in which it has an edge, and waits there for its partner. There is
// no barrier.
type synchronous struct {
	r    *run
	meet func(a *agent, t int) error // lets the agents decide of changes of the members
}

func newSynchronous(r *run, first int) *synchronous {
	r.progress = newProgress(r.localAgents(), first, r.length())
	r.steps = r.progress
	if r.group.joins() {
		r.progress.passed = first - 1 // It has to take a change over there.
	}
	if r.opt.Process == nil && r.opt.Folder != nil { // Agents of other processes keep checkpoints of their own.
		r.progress.pinned = r.setup.DecayStart()
	}
	return &synchronous{r, r.newMeeting()}
}

func (d *synchronous) attach(*agent, *runfolder.Checkpoint) error { return nil }
func (d *synchronous) direct(context.Context, int)                {}
func (d *synchronous) close()                                     {}
func (d *synchronous) overlapsGradients() bool                    { return true }
func (d *synchronous) repeatsEvaluations() bool                   { return true }
func (d *synchronous) snapshotLimit() int                         { return snapshot.Circulating + 1 }

func (d *synchronous) run(ctx context.Context, a *agent, first int) error {
	err := a.exchange.relaunch(a.state, first)
	if err == nil {
		err = d.iterate(ctx, a, first)
	}
	return a.finish(ctx, d.r.absorb(err, 0))
}

// iterate runs iterations until [progress] says stop.
func (d *synchronous) iterate(ctx context.Context, a *agent, first int) error {
	for t := first; ; t++ {
		if ctx.Err() != nil { // an agent without edges would not notice before its next snapshot
			return context.Cause(ctx)
		}
		d.r.opt.Control.Wait(ctx)
		if err := d.assemble(a, t, first); err != nil {
			return err
		}
		d.r.live.enter(a.id, t)
		o := d.r.progress.await(a.ctx, a.id, t)
		if o.halt {
			a.halt(errHalted)
		}
		if eval := o.valid && d.r.setup.EvalAt(t); eval || o.save {
			if err := a.leave(ctx, t, t, eval, o.save); err != nil {
				return err
			}
		}
		if o.stop {
			return nil
		}
		if a.id == 0 && d.r.opt.OnStep != nil {
			d.r.opt.OnStep(t)
		}
		if !d.r.setup.Members.Present(a.id, t) {
			continue
		}
		if err := d.step(a, t); err != nil {
			return err
		}
	}
}

// newMeeting returns a function that each agent calls at the head of each iteration. Where the
// changes of the members are known before, it does nothing. Between processes an agent waits until
// they agree.
func (r *run) newMeeting() func(*agent, int) error {
	s := r.setup
	switch {
	case !s.DropsSilent():
		return func(*agent, int) error { return nil }
	case r.opt.Process != nil:
		return func(a *agent, t int) error {
			r.progress.pass(a.ctx, t, func() bool { return s.Members.Change(t) == nil })
			return nil
		}
	}
	c := council.New(s)
	return func(a *agent, t int) error {
		until, err := c.Meet(a.ctx, a.id, t, a.time)
		if err == nil && s.Members.Present(a.id, t) {
			a.clock.Receive(until)
			a.time = a.clock.End()
		}
		return err
	}
}

// assemble takes an agent over a change of the members at the head of iteration t, unless the run
// was resumed behind it. An absent agent waits until some member gets as far.
func (d *synchronous) assemble(a *agent, t, first int) error {
	members, begin := d.r.setup.Members, time.Now()
	if t > first {
		if err := d.meet(a, t); err != nil {
			return err
		}
	}
	switch member := members.Present(a.id, t); {
	case !member || t > first && !members.Present(a.id, t-1):
		a.releaseGradient()
		if !d.r.progress.follow(a.ctx, t) {
			return nil
		}
		if !member {
			return d.donate(a, t, first)
		}
	case members.Change(t) != nil:
		d.r.progress.approach(t)
	}
	if t == first && !d.r.group.joins() || members.Change(t) == nil {
		return d.donate(a, t, first)
	}
	err := a.regroup(t)
	if d.r.opt.Process != nil {
		d.r.log.Info("goes on with the new members", zap.Int("iteration", t),
			zap.Duration("after", time.Since(begin).Round(time.Millisecond)))
	}
	return cmp.Or(err, d.donate(a, t, first))
}

// donate gives the agents that will be members soon the state that their donor has at the head of
// iteration t, unless the run was resumed there: a checkpoint is made afterwards.
func (d *synchronous) donate(a *agent, t, first int) error {
	early := d.r.setup.Members.Donation(t)
	if early == nil || t == first && !d.r.group.joins() || a.id != early.Donor && !early.Gives(a.id) {
		return nil
	}
	return a.donation(early)
}

// step is one iteration: the local half, the exchange, the mixing half. Some algorithms have
// several exchanges.
func (d *synchronous) step(a *agent, t int) error {
	s := d.r.setup
	a.round.T = t
	a.round.Alpha, a.round.Eta = s.StepSizes(t)
	defer a.release()
	if err := a.exchange.advance(a.state, t); err != nil {
		return err
	}
	a.exchange.connect(t)
	for k, post := range a.stages {
		a.number = k
		a.Enter(a.place())
		a.acquireGradient()
		if err := post(a.state, &a.round); err != nil {
			return err
		}
		a.exchange.depart()
		if len(a.round.Links) > 0 {
			a.releaseGradient()
		}
		for i := range a.round.Links {
			if err := a.exchange.receive(i); err != nil {
				return err
			}
		}
		if err := a.exchange.settle(a.state); err != nil {
			return err
		}
		a.clock.Await()
	}
	if err := cmp.Or(s.Algo.Mix(a.state, &a.round), a.exchange.sendErr); err != nil {
		return err
	}
	a.exchange.account()
	d.r.live.exchanged(a)
	a.time = a.clock.End()
	if s.BatchPerGradient() {
		return nil
	}
	// an iteration without a gradient skips its batch, so that batches keep to their iterations
	return a.gradients.take()
}
