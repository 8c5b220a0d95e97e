package live

import (
	"context"
	"fspda/device"
	"time"
)

// handleCall answers a call: it reserves the mailbox and offers this end's values, or declines.
func (e *edge) handleCall(ctx context.Context, msg *message) error {
	a := e.a
	a.mu.Lock()
	e.recordPeerTime(msg)
	e.callID = msg.call
	if !a.frozen {
		a.opt.Trainer.Called()
	}
	fits := e.inSync && msg.epoch == e.dual.Epoch && msg.n == e.dual.N
	if !fits || a.reservedBy != nil || a.clock.Full || a.joining || a.stopped || a.frozen || a.atEnd() ||
		e.phase != idle {
		a.mu.Unlock()
		if err := e.send(ctx, &message{kind: decline, call: msg.call}); err != nil || fits {
			return err
		}
		return e.sendHello(ctx, 0)
	}
	a.reservedBy, e.phase, e.abandoned = e, offered, false
	e.deadline = time.Now().Add(a.opt.Timeouts.Exchange)
	behind := a.advanceTo(msg.t)
	e.prepare(max(a.clock.T, msg.t), behind)
	reply := message{kind: offer, call: msg.call, epoch: e.dual.Epoch, n: e.dual.N, t: e.exchange.t,
		gradientTime: min(a.gradientTime, time.Hour)}
	reply.values = e.roundOwn()
	a.mu.Unlock()
	return e.send(ctx, &reply)
}

// recordPeerTime stores the gradient time of the other end. The caller holds the lock.
func (e *edge) recordPeerTime(msg *message) {
	if msg.gradientTime > 0 {
		e.peerGradientTime = msg.gradientTime
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
	a.dev.Do(device.Gather(x.own.V, a.state.X, x.mask))
}

// roundOwn rounds this end's values to the format of the wire and returns them. Both ends compare
// exactly these numbers; x keeps its precision.
func (e *edge) roundOwn() []float32 {
	v := e.a.read(e.exchange.own.V)
	e.a.opt.Format.Round(v)
	e.a.dev.Write(e.exchange.own.V, v)
	return v
}

// handleOffer is the caller's decision: it commits and sends its values, or cancels the exchange.
// No other end decides.
func (e *edge) handleOffer(ctx context.Context, msg *message) error {
	a := e.a
	a.mu.Lock()
	e.recordPeerTime(msg)
	current := e.phase == calling && msg.call == e.callID
	if !current || e.abandoned || a.reservedBy != e || a.frozen || a.stopped || msg.epoch != e.dual.Epoch ||
		msg.n != e.dual.N {
		if current {
			e.release()
		}
		a.mu.Unlock()
		return e.send(ctx, &message{kind: cancel, call: msg.call})
	}
	behind := a.advanceTo(msg.t)
	e.prepare(msg.t, behind)
	if len(msg.values) != e.exchange.own.V.Len() {
		a.mu.Unlock()
		return e.lengthError(msg, e.exchange.own.V.Len())
	}
	own := e.roundOwn()
	e.commit(msg)
	e.sentN = e.dual.N
	reply := message{kind: values, call: msg.call, epoch: e.dual.Epoch, n: e.dual.N, t: msg.t, values: own}
	again := e.sentAtEnd
	a.mu.Unlock()
	if err := e.send(ctx, &reply); err != nil || !again {
		return err
	}
	return e.sendHello(ctx, flagAnswer)
}

// handleValues commits the called end's part: the caller has committed, however long ago.
func (e *edge) handleValues(ctx context.Context, msg *message) error {
	a := e.a
	a.mu.Lock()
	if e.phase != offered || msg.call != e.callID || msg.epoch != e.dual.Epoch || msg.n != e.dual.N+1 || a.frozen {
		if e.phase == offered && msg.call == e.callID {
			e.release()
		}
		e.inSync = false
		a.mu.Unlock()
		return e.sendHello(ctx, 0)
	}
	if len(msg.values) != e.exchange.own.V.Len() {
		a.mu.Unlock()
		return e.lengthError(msg, e.exchange.own.V.Len())
	}
	e.commit(msg)
	again := e.sentAtEnd
	a.mu.Unlock()
	if again {
		return e.sendHello(ctx, flagAnswer)
	}
	return nil
}

// commit adds the exchange to the mailbox and to the edge's dual. An end that was behind applies
// its mailbox at once. The caller holds the lock.
func (e *edge) commit(msg *message) {
	a, x := e.a, &e.exchange
	received := a.pool.Get(len(msg.values))
	a.dev.Write(received.V, msg.values)
	a.opt.Algo.Commit(a.state, &e.dual, x.own.V, received.V, x.mask)
	received.Release()
	a.clock.PeerT = x.t
	a.clock.Full = true // also with values that another edge has added after its timeout
	a.opt.Trainer.Exchanged(e.peer, len(msg.values))
	behind := x.behind
	e.release()
	if behind && !a.stopped && !a.atEnd() {
		a.applyMailbox()
	}
}
