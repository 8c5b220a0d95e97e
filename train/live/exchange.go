package live

import (
	"context"
	"time"
)

// answer is what a called end does: it keeps its mailbox free and offers its values, or declines.
func (e *edge) answer(ctx context.Context, l *message) error {
	a := e.a
	a.mu.Lock()
	e.learn(l)
	e.calls = l.call
	if !a.frozen {
		a.opt.Trainer.Called()
	}
	fits := e.settled && l.epoch == e.dual.Epoch && l.n == e.dual.N
	if !fits || a.busy != nil || a.desk.Full || a.joining || a.stopped || a.frozen || a.over() || e.phase != idle {
		a.mu.Unlock()
		if err := e.say(ctx, &message{kind: decline, call: l.call}); err != nil || fits {
			return err
		}
		return e.greet(ctx, 0)
	}
	a.busy, e.phase, e.abandoned = e, offered, false
	e.deadline = time.Now().Add(a.opt.Timeouts.Exchange)
	behind := a.catchUp(l.t)
	e.prepare(max(a.desk.T, l.t), behind)
	reply := message{kind: offer, call: l.call, epoch: e.dual.Epoch, n: e.dual.N, t: e.exchange.t,
		pace: min(a.pace, time.Hour)}
	reply.values = e.own()
	a.mu.Unlock()
	return e.say(ctx, &reply)
}

// learn notes how fast the other end is. The caller holds the lock.
func (e *edge) learn(l *message) {
	if l.pace > 0 {
		e.pace = l.pace
	}
}

// prepare draws the mask of the common time and gathers this end's values. The caller holds the
// lock.
func (e *edge) prepare(t int, behind bool) {
	a, x := e.a, &e.exchange
	x.t, x.behind = t, behind
	n := a.state.X.Len()
	if a.opt.Mask.Dense() {
		x.mask = nil
	} else {
		x.coords = a.opt.Mask.Draw(x.coords, t, a.opt.Self, e.peer)
		x.mask = a.dev.NewIndex(x.coords, x.mask)
		n = len(x.coords)
	}
	x.own = a.pool.Get(n)
	a.dev.Gather(x.own.V, a.state.X, x.mask)
}

// own is this end's values as they travel. Both ends compare just these: what the device has beyond
// float32, or beyond fewer bits of the wire, is cut off here, and x keeps it.
func (e *edge) own() []float32 {
	v := e.a.read(e.exchange.own.V)
	e.a.opt.Format.Round(v)
	e.a.dev.Write(e.exchange.own.V, v)
	return v
}

// decide is what the caller does with an offer: it commits, and says its values, or calls the
// exchange off. Nobody else decides.
func (e *edge) decide(ctx context.Context, l *message) error {
	a := e.a
	a.mu.Lock()
	e.learn(l)
	current := e.phase == calling && l.call == e.calls
	if !current || e.abandoned || a.busy != e || a.frozen || a.stopped || l.epoch != e.dual.Epoch || l.n != e.dual.N {
		if current {
			e.release()
		}
		a.mu.Unlock()
		return e.say(ctx, &message{kind: cancel, call: l.call})
	}
	behind := a.catchUp(l.t)
	e.prepare(l.t, behind)
	if len(l.values) != e.exchange.own.V.Len() {
		a.mu.Unlock()
		return e.wrong(l, e.exchange.own.V.Len())
	}
	own := e.own()
	e.commit(l)
	e.flying = e.dual.N
	reply := message{kind: values, call: l.call, epoch: e.dual.Epoch, n: e.dual.N, t: l.t, values: own}
	again := e.saidOver
	a.mu.Unlock()
	if err := e.say(ctx, &reply); err != nil || !again {
		return err
	}
	return e.greet(ctx, flagAnswer)
}

// follow is what a called end does with the caller's values: it commits, for the caller has,
// however long that was ago.
func (e *edge) follow(ctx context.Context, l *message) error {
	a := e.a
	a.mu.Lock()
	if e.phase != offered || l.call != e.calls || l.epoch != e.dual.Epoch || l.n != e.dual.N+1 || a.frozen {
		if e.phase == offered && l.call == e.calls {
			e.release()
		}
		e.settled = false
		a.mu.Unlock()
		return e.greet(ctx, 0)
	}
	if len(l.values) != e.exchange.own.V.Len() {
		a.mu.Unlock()
		return e.wrong(l, e.exchange.own.V.Len())
	}
	e.commit(l)
	again := e.saidOver
	a.mu.Unlock()
	if again {
		return e.greet(ctx, flagAnswer)
	}
	return nil
}

// commit puts the exchange into the mailbox and into the edge's dual. An end that was behind reads
// its mailbox at once. The caller holds the lock.
func (e *edge) commit(l *message) {
	a, x := e.a, &e.exchange
	heard := a.pool.Get(len(l.values))
	a.dev.Write(heard.V, l.values)
	a.opt.Algo.Commit(a.state, &e.dual, x.own.V, heard.V, x.mask)
	heard.Release()
	a.desk.PeerT = x.t
	a.desk.Full = true // with what may lie unread from another edge, whose caller took its time
	a.opt.Trainer.Exchanged(e.peer, len(l.values))
	behind := x.behind
	e.release()
	if behind && !a.stopped && !a.over() {
		a.gossip()
	}
}
