package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"fspda/data"
	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/simnet"
)

// lossLimit is the local training loss above which a run counts as diverged.
const lossLimit = 1e5

// agent walks through the iterations by itself. It meets others only where it has an edge.
type agent struct {
	id     int
	run    *run
	ctx    context.Context // of exchanges: ends when they make no sense any more
	halt   context.CancelCauseFunc
	place  *place
	dev    device.Device // of the place
	eager  Eager         // nil: gradients are waited for
	owed   []owed        // losses that are still to be looked at, the oldest first
	state  *algo.State
	model  Buffered      // nil: the network has no batch norm
	norms  device.Vector // its buffers, the agent's own
	meter  meter         // losses since the last row
	part   device.Vector // gradient of a part of a batch; nil where batches are taken whole
	loader *data.Loader
	ledger dist.Ledger
	grads  int
	scale  device.LossScale // of the latest gradient
	scaled device.Vector    // where it moves on by itself, of an eager agent

	spare chan *snapshot // two snapshots may be on their way to the collector, and one more at a divergence

	round   algo.Round
	batch   device.Batch
	taken   bool // batch holds this iteration's examples
	first   bool // the next gradient is the first of this batch: the training step
	coords  []uint32
	masks   []device.Index // one per link of a broadcast, memory reused
	lent    []*mask        // in this iteration, by the place
	clock   *simnet.Clock  // under simulated links; nil else
	own     []*dist.Buffer // lent in this iteration
	sendErr error
	heard   []*dist.Buffer
	short   []*dist.Buffer // of own: rounded to what travels
	host    []float32      // memory for that
	pk      packer
	player  *livePlayer // of a run in real time; nil else

	event int     // of an asynchronous run: the one at hand
	time  float64 // virtual: of an asynchronous run when it last left a snapshot, else the begin of this iteration
}

func newAgent(r *run, id, first int) (*agent, error) {
	s := r.setup
	loader, err := s.Loader(id, first)
	if err != nil {
		return nil, err
	}
	a := &agent{id: id, run: r, loader: loader, spare: make(chan *snapshot, circulating(s))}
	a.place = r.placeOf(id)
	a.dev, a.eager = a.place.Device, a.eagerModel()
	a.state = algo.NewState(s.Algo, a.dev, a.dev.NewVector(s.Dim))
	if b, n := s.BufferLen(), a.place.Model; b > 0 {
		a.model, a.norms = n.(Buffered), a.dev.NewVector(b)
		a.dev.Write(a.norms, a.model.InitBuffers())
	}
	if s.Config.Accum > 1 {
		a.part = a.dev.NewVector(s.Dim)
	}
	for range 2 {
		a.spare <- a.newSnapshot()
	}
	a.round = algo.Round{Self: id, Grad: a.grad, Acquire: a.lend, Swap: a.trader(), Post: a.post}
	a.prepare()
	a.clock = s.NewClock(id)
	return a, nil
}

func (a *agent) newSnapshot() *snapshot {
	return newSnapshot(a.dev, a.state, a.run.setup.BufferLen())
}

// circulating is how many snapshots of an agent there may be.
func circulating(s *Setup) int {
	if s.RealTime() {
		return s.EvalCount() + 8
	}
	return 3
}

// walk goes from iteration first to wherever the pace says stop. When ctx ends it ends with its
// cause.
func (a *agent) walk(ctx context.Context, first int) (err error) {
	defer a.loader.Close()
	defer func() { err = a.lookBack(ctx, err) }()
	for t := first; ; t++ {
		if ctx.Err() != nil { // an agent without edges would not hear of it before its next snapshot
			return context.Cause(ctx)
		}
		a.run.opt.Control.wait(ctx)
		a.run.opt.Watch.enter(a.id, t)
		o := a.run.pace.enter(a.id, t)
		if o.alone {
			a.halt(errHalted)
		}
		if eval := o.count && a.run.setup.EvalAt(t); eval || o.save {
			switch err := a.leave(ctx, t, eval, o.save); {
			case errors.Is(err, errHalted):
				return nil
			case errors.As(err, new(*DivergedError)):
				return a.broke(err)
			case err != nil:
				return err
			}
		}
		if o.stop {
			return nil
		}
		if a.id == 0 && a.run.opt.OnStep != nil {
			a.run.opt.OnStep(t)
		}
		switch err := a.step(t); {
		case err == nil:
		case errors.As(err, new(*DivergedError)):
			return a.broke(err)
		case errors.Is(err, errHalted):
			return nil
		case err != nil:
			return err
		}
	}
}

// broke records the divergence that err tells of.
func (a *agent) broke(err error) error {
	var d *DivergedError
	errors.As(err, &d)
	a.run.diverged(d)
	return nil
}

// step is one iteration: the local half, the exchange, the mixing half.
func (a *agent) step(t int) error {
	s := a.run.setup
	a.round.T = t
	a.round.Alpha, a.round.Eta = s.Schedule.At(t - t%s.RoundLength())
	a.connect(t)
	defer a.letGo()
	if err := s.Algo.Local(a.state, &a.round); err != nil {
		return err
	}
	for i := range a.round.Links {
		if err := a.hear(&a.round.Links[i]); err != nil {
			return err
		}
	}
	if err := s.Algo.Mix(a.state, &a.round); err != nil {
		return err
	}
	a.account()
	a.run.opt.Watch.exchanged(a)
	a.time = a.clock.End()
	if s.BatchPerGradient() {
		return nil
	}
	return a.take() // an iteration without a gradient passes its batch over, so that batches keep to their iterations
}

// connect sets the round's links: this iteration's edges at the agent, each with the mask that both
// ends derive.
func (a *agent) connect(t int) {
	s := a.run.setup
	a.round.Links, a.round.Shared = a.round.Links[:0], nil
	if s.Collective {
		a.round.Shared = a.common
		for peer := range s.Graph.N {
			if peer != a.id {
				a.link(peer, nil, s.Dim, 1/float64(s.Graph.N), 0)
			}
		}
		return
	}
	if s.Compressor != nil {
		a.broadcast(t)
		return
	}
	now := a.run.active(t)
	defer a.run.actives.Put(now)
	for k, e := range now.events {
		peer, ok := e.Peer(a.id)
		if !ok {
			continue
		}
		w, fixed := now.weights.Event(k), 0.0
		if s.Mixing != nil {
			fixed = s.Mixing.Edge(e.Edge)
		}
		if s.Mask.Dense() {
			a.link(peer, nil, s.Dim, w, fixed)
			a.round.Links[len(a.round.Links)-1].Initiator = a.begins(t, e)
			continue
		}
		x := a.mask(t, peer)
		a.link(peer, x, x.Len(), w, fixed)
		a.round.Links[len(a.round.Links)-1].Initiator = a.begins(t, e)
	}
	if n := s.Graph.N; s.Mask.Dense() && len(now.events) == n*(n-1)/2 && len(a.round.Links) == n-1 {
		a.round.Shared = a.common
	}
}

// common is Round.Shared.
func (a *agent) common(which int, fill func(dst device.Vector)) device.Vector {
	b := a.place.commons.get(a.round.T, which, fill)
	a.heard = append(a.heard, b)
	return b.V
}

// link appends one link to the round, reusing the memory of an earlier round's.
func (a *agent) link(peer int, mask device.Index, length int, weight, fixed float64) {
	n := len(a.round.Links)
	if n < cap(a.round.Links) {
		a.round.Links = a.round.Links[:n+1]
	} else {
		a.round.Links = append(a.round.Links, algo.Link{})
	}
	l := &a.round.Links[n]
	l.Peer, l.Mask, l.Len, l.ActiveWeight, l.FixedWeight = peer, mask, length, weight, fixed
	l.Initiator, l.PeerInactive = false, false
	l.Sent, l.Received = l.Sent[:0], nil
}

// lend is Round.Acquire.
func (a *agent) lend(n int) device.Vector {
	b := a.place.pool.Get(n)
	a.own = append(a.own, b)
	return b.V
}

// trade is Round.Swap: the vector and that of a lent buffer change places.
func (a *agent) trade(v device.Vector) device.Vector {
	a.lend(v.Len())
	b := a.own[len(a.own)-1]
	b.V, v = v, b.V
	return v
}

// post is Round.Post: the vectors go to the transport, shared with the agent that reads them as its
// own.
func (a *agent) post(link int, values ...device.Vector) {
	l := &a.round.Links[link]
	m := dist.Message{T: a.round.T, From: a.id, To: l.Peer, Codec: a.pk.codec}
	for _, v := range values {
		at := slices.IndexFunc(a.own, func(b *dist.Buffer) bool { return b.V == v })
		if at < 0 {
			panic(fmt.Sprintf("train: agent %d posts a vector that the round did not lend", a.id))
		}
		a.shorten(a.own[at])
		a.own[at].Retain(1)
		m.Values = append(m.Values, a.own[at])
		l.Sent = append(l.Sent, v)
	}
	if a.clock != nil {
		m.Arrives = a.clock.Post(m.T, l.Peer, a.messageBits(values))
	}
	if err := a.run.net.Send(a.ctx, m); err != nil && a.sendErr == nil {
		a.sendErr = err
	}
}

// hear waits for what the other end of the link posted.
func (a *agent) hear(l *algo.Link) error {
	if a.sendErr != nil {
		return a.sendErr
	}
	if l.PeerInactive || len(l.Sent) == 0 && a.run.setup.Compressor == nil {
		return nil
	}
	m, err := a.run.net.Recv(a.ctx, a.id, l.Peer, a.round.T)
	if errors.Is(err, dist.ErrIdle) {
		return nil
	}
	if err != nil {
		return cmp.Or(context.Cause(a.ctx), err)
	}
	a.clock.Receive(m.Arrives)
	for i, b := range m.Values {
		b = a.home(b)
		m.Values[i] = b
		a.heard = append(a.heard, b)
		l.Received = append(l.Received, b.V)
	}
	if a.run.setup.Compressor != nil {
		a.locate(l, m.Values[0])
	}
	return nil
}

// account enters the iteration's messages in the ledger: those that arrived, for an edge that
// failed did not happen.
func (a *agent) account() {
	s := a.run.setup
	if s.Collective {
		if n := s.Graph.N; n > 1 {
			a.sent(dist.Sent{Values: ringShare(a.id, n, s.Dim), Mask: s.Dim})
		}
		return
	}
	for i := range a.round.Links {
		l := &a.round.Links[i]
		switch {
		case s.Compressor != nil:
			if len(l.Sent) > 0 {
				a.accountOne(l)
			}
			continue
		case l.Received == nil:
			continue
		case s.Lattice != nil:
			a.accountOne(l)
			continue
		}
		values := 0
		for _, v := range l.Sent {
			values += v.Len()
		}
		a.sent(dist.Sent{Values: values, Mask: l.Len, Indices: a.id > l.Peer})
	}
}

// sent counts one message of plain values. In one process its bytes are those of the vectors that
// change hands.
func (a *agent) sent(m dist.Sent) {
	m.ValueBits, m.Dim = a.run.setup.WireFormat().Bits(), a.run.setup.Dim
	a.ledger.Send(m)
	a.ledger.WireBytes += uint64(m.ValueBits/8) * uint64(m.Values)
}

// ringShare is the number of values that agent i sends in a ring all-reduce of d values over n
// agents: in each of the two phases all chunks but one. The sum over agents is 2(n-1)d.
func ringShare(i, n, d int) int {
	chunk := func(c int) int { c %= n; return d*(c+1)/n - d*c/n }
	return 2*d - chunk(i+1) - chunk(i+2)
}

// letGo ends the round's hold on buffers and batch.
func (a *agent) letGo() {
	for _, b := range a.own {
		b.Release()
	}
	for _, b := range a.heard {
		b.Release()
	}
	a.own, a.heard, a.short = a.own[:0], a.heard[:0], a.short[:0]
	a.place.masks.letGo(a.lent)
	a.lent = a.lent[:0]
	if a.taken {
		a.loader.Release(a.batch)
		a.taken = false
	}
}

// grad is Round.Grad: the gradient of this iteration's batch at any point.
func (a *agent) grad(dst, x device.Vector) error {
	if err := a.take(); err != nil {
		return err
	}
	if a.eager != nil {
		return a.begin(dst, x)
	}
	begin := time.Now()
	loss, err := a.differentiate(dst, x)
	if err != nil {
		return fmt.Errorf("train: gradient of agent %d in iteration %d: %w", a.id, a.round.T, err)
	}
	if !(math.Abs(loss) <= lossLimit) { // NaN too
		return &DivergedError{Agent: a.id, T: a.round.T, Loss: loss}
	}
	a.run.opt.Watch.gradient(a.id, loss)
	if a.first {
		a.meter.add(loss)
		a.first = false
	}
	if err := a.linger(a.ctx, begin); err != nil {
		return err
	}
	a.clip(dst)
	a.count(dst)
	return nil
}

// count is what follows a gradient.
func (a *agent) count(dst device.Vector) {
	a.clock.Gradient(a.grads)
	a.grads++
	if scale := a.run.setup.GradientScale(a.id); scale != 1 {
		a.dev.Combine(dst, device.Term{A: scale, V: dst})
	}
}

// take takes this iteration's batch, once.
func (a *agent) take() error {
	if a.taken {
		return nil
	}
	b, err := a.loader.Next()
	if err != nil {
		return err
	}
	a.batch, a.taken, a.first = b, true, true
	return nil
}

// leave copies the agent's state at the head of iteration t for the collector.
func (a *agent) leave(ctx context.Context, t int, eval, save bool) error {
	if err := a.look(0); err != nil {
		return err
	}
	var sn *snapshot
	select {
	case sn = <-a.spare:
	case <-a.ctx.Done():
		if ctx.Err() != nil || a.beyond(t) {
			return context.Cause(a.ctx)
		}
		// The run diverged inside t: its head still counts, but nobody may be left to set a
		// snapshot free.
		sn = a.newSnapshot()
	}
	sn.agent, sn.t, sn.eval, sn.save = a.id, t, eval, save
	sn.ledger, sn.grads, sn.decodes, sn.scale, sn.time = a.ledger, a.grads, a.pk.decodes, a.scale, a.time
	sn.meter = a.meter // as it was before the row, which a run that goes on from here makes again
	if eval {
		a.meter = meter{}
	}
	sn.clock = a.clock.State() // an evaluation that is given up leaves a checkpoint, too
	if a.norms != nil {
		a.dev.Gather(sn.buffers, a.norms, nil)
	}
	a.dev.Gather(sn.x, a.state.X, nil)
	for i, v := range a.state.Aux {
		a.dev.Gather(sn.aux[i], v, nil)
	}
	if m := a.run.member; m != nil {
		return m.deliver(ctx, sn)
	}
	select {
	case a.run.snapshots <- sn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// beyond tells whether the head of iteration t lies behind a divergence: not all agents will get
// there.
func (a *agent) beyond(t int) bool {
	if a.run.events != nil {
		return a.run.events.beyond(a.event)
	}
	return a.run.pace.beyond(t)
}

// errHalted ends the wait of an agent whose run diverged elsewhere.
var errHalted = errors.New("train: halted")

// DivergedError reports an agent whose training loss left the range of sense.
type DivergedError struct {
	Agent, T int
	Loss     float64
	Cause    error // what came before the loss could show it; mostly nil
}

// Unwrap returns the cause.
func (e *DivergedError) Unwrap() error { return e.Cause }

func (e *DivergedError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("train: diverged: agent %d in iteration %d: %v", e.Agent, e.T, e.Cause)
	}
	return fmt.Sprintf("train: diverged: the training loss of agent %d in iteration %d is %g (limit %g): lower alpha, or check eta, gamma and momentum", e.Agent, e.T, e.Loss, lossLimit)
}

// ExitCode returns 3, the exit status for a run that diverged.
func (e *DivergedError) ExitCode() int { return 3 }
