package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/live"
)

// livePlayer is an agent of a run in real time: it turns what fspda/train/live tells of into
// batches, losses, snapshots and bits.
type livePlayer struct {
	*agent
	engine *live.Agent
	// buffers of batch norm as of the latest gradient that was applied; nil: the network has none
	shown    device.Vector
	loss     float64 // of the gradient at hand
	reported int     // evaluations so far
	started  bool
	took     int          // gradients that were applied in this life
	met      int          // exchanges in it
	at       atomic.Int64 // logical time
	out      outbox
}

// live plays an agent in real time.
func (a *agent) live(ctx context.Context, _ int) error {
	defer a.loader.Close()
	l := a.player
	sending := make(chan error, 1)
	go func() { sending <- l.out.deliver(func(sn *snapshot) error { return a.run.member.deliver(ctx, sn) }) }()
	err := l.engine.Run(a.ctx)
	var d *DivergedError
	switch {
	case errors.As(err, &d):
		a.run.diverged(d)
		err = nil
	case errors.Is(err, errHalted):
		err = nil
	}
	l.out.close()
	return errors.Join(err, <-sending)
}

// newLivePlayer prepares an agent for real time. It needs the network of a member.
func newLivePlayer(a *agent, board dist.SessionOpener) *livePlayer {
	s := a.run.setup
	c := s.Config
	l := &livePlayer{agent: a, out: newOutbox()}
	if a.norms != nil {
		l.shown = a.dev.NewVector(a.norms.Len())
		a.dev.Gather(l.shown, a.norms, nil)
	}
	alpha, eta := s.Schedule.At(0)
	l.engine = live.New(live.Options{Self: a.id, Agents: s.Graph.N, Neighbours: neighbours(s.Graph, a.id),
		Edges: len(s.Graph.Edges), Until: c.Iterations,
		Algo: s.Async(), Alpha: alpha, Eta: eta, Mask: s.Mask, Format: s.WireFormat(), Seed: c.Seed, CallRate: c.Contacts,
		Timeouts: live.Timeouts{Exchange: seconds(c.GiveUp), Drop: seconds(c.DropAfter), Finish: max(farewell, seconds(c.GiveUp))},
		Network:  board, State: a.state, Buffers: l.shown, Trainer: l, Log: a.run.log})
	return l
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func neighbours(g *dist.Graph, i int) (all []int) {
	for _, e := range g.Edges {
		switch i {
		case e.I:
			all = append(all, e.J)
		case e.J:
			all = append(all, e.I)
		}
	}
	slices.Sort(all)
	return all
}

// Gradient implements [live.Trainer]. A gradient that was discarded is followed by one of the same
// batch.
func (l *livePlayer) Gradient(ctx context.Context, dst, x device.Vector) error {
	begin := time.Now()
	if err := l.take(); err != nil {
		return err
	}
	loss, err := l.differentiate(dst, x)
	if err != nil {
		return err
	}
	if !(math.Abs(loss) <= lossLimit) { // NaN too
		return &DivergedError{Agent: l.id, T: int(l.at.Load()), Loss: loss}
	}
	l.clip(dst)
	if scale := l.run.setup.GradientScale(l.id); scale != 1 {
		l.dev.Combine(dst, device.Term{A: scale, V: dst})
	}
	l.loss = loss
	return l.linger(ctx, begin)
}

// linger makes a gradient that began then as slow as the configuration wants it.
func (a *agent) linger(ctx context.Context, begin time.Time) error {
	s := a.run.setup
	if s.Config.GradientTime == 0 {
		return nil
	}
	t := time.NewTimer(seconds(s.Config.GradientTime*s.ComputeTimes.Mean[a.id]) - time.Since(begin))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Applied implements [live.Trainer].
func (l *livePlayer) Applied() {
	l.run.opt.Watch.gradient(l.id, l.loss)
	l.meter.add(l.loss)
	l.grads++
	l.took++
	if l.shown != nil {
		l.dev.Gather(l.shown, l.norms, nil)
	}
	l.letGo()
}

// Called implements [live.Trainer].
func (l *livePlayer) Called() { l.ledger.Overhead += contactBits }

// Exchanged implements [live.Trainer].
func (l *livePlayer) Exchanged(peer, values int) {
	l.met++
	l.sent(dist.Sent{Values: values, Mask: values, Indices: l.id > peer})
	l.run.opt.Watch.met(l.agent, peer)
}

// Advanced implements [live.Trainer]. It leaves snapshots where the logical time has passed an
// evaluation or a checkpoint is requested.
func (l *livePlayer) Advanced(v live.Snapshot) (stop bool) {
	r, s, t := l.run, l.run.setup, v.Clock.T
	if !l.started {
		l.started = true
		if l.shown != nil {
			r.dev.Gather(l.norms, l.shown, nil) // those of the others, where it has joined
		}
	}
	o := r.pace.cross(l.id, t)
	if o.alone {
		l.halt(errHalted)
	}
	l.at.Store(int64(t))
	r.opt.Watch.enter(l.id, t)
	if l.id == 0 && r.opt.OnStep != nil {
		r.opt.OnStep(min(t, s.Config.Iterations))
	}
	last := s.Config.Iterations
	for l.reported < s.EvalsBefore(min(t+1, last)) {
		l.leave(v, s.EvalPoint(l.reported), true, false)
	}
	if o.save && t+1 < last {
		l.leave(v, t+1, false, true)
	}
	return o.stop
}

// Finished implements [live.Trainer]. It leaves the last snapshot.
func (l *livePlayer) Finished(v live.Snapshot) {
	l.leave(v, l.run.setup.Config.Iterations, true, true)
	const enough, share = 100, 0.2 // agents decline calls while they have mail
	if want := l.run.setup.Config.Contacts; l.took >= enough && float64(l.met) < share*want*float64(l.took) {
		l.run.log.Warn("the agent met others less often than contacts asks for: an exchange takes longer than a gradient; models that differ much meet better with larger batches, or with a synchronous algorithm",
			zap.Float64("exchanges_per_gradient", float64(l.met)/float64(l.took)), zap.Float64("contacts", want))
	}
}

// leave copies the agent's state: for evaluation t, or for a checkpoint, in which all evaluations
// before t are reported. The last one is both.
func (l *livePlayer) leave(v live.Snapshot, t int, eval, save bool) {
	var sn *snapshot
	select {
	case sn = <-l.spare:
	default: // the collector is slow, or away: nobody waits for it
		sn = l.newSnapshot()
	}
	sn.agent, sn.t, sn.eval, sn.save, sn.duals, sn.live = l.id, t, eval, save, nil, nil
	sn.ledger, sn.grads, sn.meter = l.ledger, l.grads, l.meter
	if eval {
		l.reported++
		l.meter = meter{}
		l.run.member.left.Store(int64(l.reported))
	}
	if save {
		sn.live, sn.duals = recordLive(v, l.dev)
	}
	dev := l.dev
	if l.shown != nil {
		dev.Gather(sn.buffers, l.shown, nil)
	}
	dev.Gather(sn.x, l.state.X, nil)
	for i, aux := range l.state.Aux {
		dev.Gather(sn.aux[i], aux, nil)
	}
	l.out.add(sn)
}

// liveRecord is what a checkpoint of an agent in real time holds beside its vectors.
type liveRecord struct {
	Desk  algo.LogicalClock `json:"desk"`
	Edges []liveEdge        `json:"edges"`
}

// liveEdge is where an edge stands. Its dual is a vector of its own, unless it is zero.
type liveEdge struct {
	Peer  int  `json:"peer"`
	Epoch int  `json:"epoch"`
	N     int  `json:"exchanges"`
	Fresh bool `json:"fresh,omitempty"`
}

// recordLive copies a view. The duals are those of edges with exchanges.
func recordLive(v live.Snapshot, dev device.Device) (*liveRecord, map[int]device.Vector) {
	r, duals := &liveRecord{Desk: v.Clock}, map[int]device.Vector{}
	for _, e := range v.Edges {
		r.Edges = append(r.Edges, liveEdge{Peer: e.Peer, Epoch: e.Dual.Epoch, N: e.Dual.N, Fresh: e.Fresh})
		if e.Dual.N > 0 {
			s := dev.NewVector(e.Dual.S.Len())
			dev.Gather(s, e.Dual.S, nil)
			duals[e.Peer] = s
		}
	}
	return r, duals
}

// outbox keeps snapshots until they are delivered, as many as there are: an agent in real time
// waits for nobody.
type outbox struct {
	mu     *sync.Mutex
	more   *sync.Cond
	list   *[]*snapshot
	closed *bool
}

func newOutbox() outbox {
	mu := new(sync.Mutex)
	return outbox{mu: mu, more: sync.NewCond(mu), list: new([]*snapshot), closed: new(bool)}
}

func (o outbox) add(sn *snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*o.list = append(*o.list, sn)
	o.more.Signal()
}

func (o outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	*o.closed = true
	o.more.Signal()
}

// deliver hands all snapshots to send, in order, until the box is closed and empty. After an error
// they are let go.
func (o outbox) deliver(send func(*snapshot) error) (err error) {
	for {
		o.mu.Lock()
		for len(*o.list) == 0 && !*o.closed {
			o.more.Wait()
		}
		if len(*o.list) == 0 {
			o.mu.Unlock()
			return err
		}
		sn := (*o.list)[0]
		*o.list = (*o.list)[1:]
		o.mu.Unlock()
		if err == nil {
			err = send(sn)
		}
	}
}
