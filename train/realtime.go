package train

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/dist"
	"fspda/train/config"
	"fspda/train/live"
	"fspda/train/process"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

// realTime is the driver of an asynchronous run in real time. Package fspda/train/live runs the
// protocol between the agents; a realTimeAgent provides it with gradients, and turns its progress
// into snapshots.
type realTime struct {
	r        *run
	sessions dist.SessionOpener
	agents   map[int]*realTimeAgent
}

func newRealTime(r *run, first int) (*realTime, error) {
	sessions, ok := r.net.(dist.SessionOpener)
	if !ok {
		return nil, config.Invalid("clock", r.setup.Config.Clock,
			"in real time each agent has a process of its own: use fspda up, or clock virtual")
	}
	r.progress = newProgress(r.localAgents(), first, r.length())
	r.steps = r.progress
	return &realTime{r: r, sessions: sessions, agents: map[int]*realTimeAgent{}}, nil
}

func (d *realTime) direct(context.Context, int) {}
func (d *realTime) overlapsGradients() bool     { return false }
func (d *realTime) repeatsEvaluations() bool    { return false }
func (d *realTime) snapshotLimit() int          { return d.r.setup.EvalCount() + 8 }

// attach prepares the protocol of an agent, where checkpoint ck left it.
func (d *realTime) attach(a *agent, ck *runfolder.Checkpoint) error {
	l := newRealTimeAgent(a, d.sessions)
	d.agents[a.id] = l
	if ck == nil {
		return nil
	}
	v, err := a.loadEdges(ck)
	if err != nil {
		return err
	}
	l.protocol.Restore(v)
	l.reported = a.run.setup.EvalsBefore(ck.Iteration)
	return nil
}

func (d *realTime) run(ctx context.Context, a *agent, _ int) error {
	l := d.agents[a.id]
	sent := make(chan error, 1)
	go func() { sent <- l.out.Deliver(func(sn *snapshot.Snapshot) error { return d.r.group.Deliver(ctx, sn) }) }()
	err := d.r.absorb(l.protocol.Run(a.ctx), 0)
	l.out.Close()
	return errors.Join(err, <-sent)
}

// close ends the sessions: until then the agents answer others, which may not have come to their
// end.
func (d *realTime) close() {
	for _, l := range d.agents {
		l.protocol.Close()
	}
}

// realTimeAgent is the [live.Trainer] of an agent in real time. It computes the gradients for the
// protocol, and turns its progress into losses, snapshots and bits.
type realTimeAgent struct {
	*agent
	protocol *live.Agent
	// buffers of batch norm as of the latest gradient that was applied; nil: the network has none
	applied   device.Vector
	loss      float64      // loss of the latest gradient
	reported  int          // evaluations so far
	moves     int          // gradients applied since this process started
	exchanges int          // exchanges since this process started
	logical   atomic.Int64 // logical time
	out       snapshot.Outbox
}

func newRealTimeAgent(a *agent, sessions dist.SessionOpener) *realTimeAgent {
	s := a.run.setup
	c := s.Config
	l := &realTimeAgent{agent: a}
	if b := a.gradients.buffers; b != nil {
		l.applied = a.dev.NewVector(b.Len())
		a.dev.Do(device.Gather(l.applied, b, nil))
	}
	alpha, eta := s.Schedule.At(0)
	l.protocol = live.New(live.Options{Self: a.id, Agents: s.Graph.N, Neighbours: s.Graph.Neighbours(a.id),
		Edges: len(s.Graph.Edges), Until: a.run.length(),
		Algo: s.Traits.RealTime, Alpha: alpha, Eta: eta, Mask: s.Mask, Format: s.WireFormat(),
		Seed: c.Seed, CallRate: c.Contacts,
		Timeouts: live.Timeouts{Exchange: seconds(c.GiveUp), Drop: seconds(c.DropAfter),
			Finish: max(process.ShutdownTimeout, seconds(c.GiveUp))},
		Network: sessions, State: a.state, Buffers: l.applied, Trainer: l, Log: a.run.log})
	return l
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Gradient implements [live.Trainer]. If the previous gradient was discarded, it uses the same
// batch again.
func (l *realTimeAgent) Gradient(ctx context.Context, dst, x device.Vector) error {
	g := &l.gradients
	begin := time.Now()
	if err := g.take(); err != nil {
		return err
	}
	if l.applied != nil {
		// a discarded gradient has changed the buffers, or the agent has joined with another
		// agent's buffers
		l.dev.Do(device.Gather(g.buffers, l.applied, nil))
	}
	wait, err := g.start(dst, x)
	if err != nil {
		return err
	}
	loss, err := wait()
	if err != nil {
		return err
	}
	g.readScale()
	if err := g.check(loss, int(l.logical.Load())); err != nil {
		return err
	}
	g.clip(dst, x)
	g.weigh(dst)
	l.loss = loss
	return g.fillGradientTime(ctx, begin)
}

func (l *realTimeAgent) Applied() {
	g := &l.gradients
	l.run.live.gradient(l.id, l.loss)
	g.meter.Add(l.loss)
	g.count++
	l.moves++
	if l.applied != nil {
		l.dev.Do(device.Gather(l.applied, g.buffers, nil))
	}
	l.release()
}

func (l *realTimeAgent) Called() { l.exchange.ledger.Overhead += contactBits }

func (l *realTimeAgent) Exchanged(peer, values int) {
	l.exchanges++
	l.exchange.countSent(dist.Sent{Values: values, Mask: values, Indices: l.id > peer})
	l.run.live.met(l.agent, peer)
}

// Advanced implements [live.Trainer]. It leaves snapshots where the logical time has passed an
// evaluation, or a checkpoint was requested.
func (l *realTimeAgent) Advanced(v live.Snapshot) (stop bool) {
	r, s, t := l.run, l.run.setup, v.Clock.T
	o := r.progress.cross(l.id, t)
	if o.halt {
		l.halt(errHalted)
	}
	l.logical.Store(int64(t))
	r.live.enter(l.id, t)
	if l.id == 0 && r.opt.OnStep != nil {
		r.opt.OnStep(min(t, r.length()))
	}
	last := r.length()
	for l.reported < s.EvalsBefore(min(t+1, last)) {
		l.leave(v, s.EvalPoint(l.reported), true, false)
	}
	if o.save && t+1 < last {
		l.leave(v, t+1, false, true)
	}
	return o.stop
}

// Finished implements [live.Trainer]. It leaves the last snapshot.
func (l *realTimeAgent) Finished(v live.Snapshot) {
	l.leave(v, l.run.length(), true, true)
	const enough, share = 100, 0.2 // agents decline exchanges while their mailbox is full
	want := l.run.setup.Config.Contacts
	if l.moves >= enough && float64(l.exchanges) < share*want*float64(l.moves) {
		l.run.log.Warn("the agent exchanged less often than contacts asks for, because an exchange takes longer "+
			"than a gradient; use larger batches, or a synchronous algorithm",
			zap.Float64("exchanges_per_gradient", float64(l.exchanges)/float64(l.moves)), zap.Float64("contacts", want))
	}
}

// leave copies the agent's state: for evaluation t, or for a checkpoint in which all evaluations
// before t are reported. The last one is both. It does not wait for the collector.
func (l *realTimeAgent) leave(v live.Snapshot, t int, eval, save bool) {
	sn := l.snapshots.TryAcquire(l.newSnapshot)
	l.copyTo(sn, t, eval, save)
	sn.RealTime, sn.Duals = nil, nil
	if eval {
		l.reported++
	}
	if save {
		sn.RealTime, sn.Duals = saveEdges(v, l.dev)
	}
	if l.applied != nil {
		l.dev.Do(device.Gather(sn.Buffers, l.applied, nil))
	}
	l.out.Add(sn)
}

// loadEdges reads the state of an agent's edges from a checkpoint.
func (a *agent) loadEdges(ck *runfolder.Checkpoint) (v live.Snapshot, err error) {
	s := a.run.setup
	neighbours := s.Graph.Neighbours(a.id)
	if ck.Live == nil || len(ck.Live.Edges) != len(neighbours) {
		return v, ck.Damaged("it lacks the edges of an agent in real time")
	}
	v.Clock = ck.Live.Clock
	for i, e := range ck.Live.Edges {
		if e.Peer != neighbours[i] || e.N < 0 || e.Epoch < 0 {
			return v, ck.Damaged(fmt.Sprintf("edge %d leads to agent %d", i, e.Peer))
		}
		w := live.EdgeSnapshot{Peer: e.Peer, Fresh: e.Fresh}
		w.Dual.Epoch, w.Dual.N, w.Dual.S = e.Epoch, e.N, a.dev.NewVector(s.Dim)
		if e.N > 0 {
			if err := ck.LoadDual(a.id, e.Peer, a.dev, w.Dual.S); err != nil {
				return v, err
			}
		}
		v.Edges = append(v.Edges, w)
	}
	return v, nil
}

// saveEdges copies the clock and the edges of an agent for a checkpoint. Only edges with exchanges
// have a dual.
func saveEdges(v live.Snapshot, dev device.Device) (*snapshot.RealTime, map[int]device.Vector) {
	r, duals := &snapshot.RealTime{Clock: v.Clock}, map[int]device.Vector{}
	for _, e := range v.Edges {
		r.Edges = append(r.Edges, snapshot.Edge{Peer: e.Peer, Epoch: e.Dual.Epoch, N: e.Dual.N, Fresh: e.Fresh})
		if e.Dual.N > 0 {
			s := dev.NewVector(e.Dual.S.Len())
			dev.Do(device.Gather(s, e.Dual.S, nil))
			duals[e.Peer] = s
		}
	}
	return r, duals
}
