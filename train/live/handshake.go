package live

import (
	"context"

	"go.uber.org/zap"

	"fspda/train/algo"
)

// handleHello compares the states of both ends of the edge. The end that is behind moves: to a
// later epoch immediately, to a higher count when it receives the dual of the end that is ahead.
func (e *edge) handleHello(ctx context.Context, msg *message) error {
	a := e.a
	a.mu.Lock()
	e.dropped, e.peerAtEnd, e.peerEpoch, e.peerN = false, msg.has(flagAtEnd), msg.epoch, msg.n
	if msg.gradientTime > 0 {
		e.peerGradientTime = msg.gradientTime
	}
	was := e.dual
	if !a.frozen {
		e.reconcile(msg)
	}
	e.inSync = e.dual.Epoch == msg.epoch && e.dual.N == msg.n
	if e.inSync {
		e.fresh = false
	}
	var answers []*message // written now, before what notify starts changes the state
	if !msg.has(flagAnswer) || was != e.dual {
		answers = append(answers, e.hello(flagAnswer))
	}
	if e.ahead(msg) && e.dual.N > 0 && !msg.has(flagFresh) && !e.inFlight(msg) {
		answers = append(answers, &message{kind: state, epoch: e.dual.Epoch, n: e.dual.N, t: a.clock.T,
			values: a.read(e.dual.S)})
	}
	if msg.has(flagWant) && !a.joining && a.clock.T > 0 {
		answers = append(answers, &message{kind: model, t: a.clock.T, values: a.read(a.state.X),
			buffers: a.read(a.opt.Buffers)})
	}
	if msg.t == 0 || msg.has(flagJoining) {
		e.answered = true
	}
	a.notify()
	a.mu.Unlock()
	for _, m := range answers {
		if err := e.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// reconcile moves this end to a later epoch of the other end, and to the end of the run if the
// other end has reached it. The caller holds the lock.
func (e *edge) reconcile(msg *message) {
	a := e.a
	switch {
	case msg.has(flagFresh) && e.dual.N > 0:
		a.opt.Log.Info("an agent has returned without its history: its edge starts anew", zap.Int("peer", e.peer))
		a.opt.Algo.Drop(a.state, &e.dual, e.dual.Epoch+1)
	case msg.epoch > e.dual.Epoch:
		if e.dual.N > 0 {
			a.opt.Log.Info("was dropped by another agent: the edge starts anew", zap.Int("peer", e.peer))
		}
		a.opt.Algo.Drop(a.state, &e.dual, msg.epoch)
	}
	if msg.has(flagAtEnd) && !a.atEnd() && !a.joining {
		a.interrupt()
		a.clock.T = max(a.clock.T, a.opt.Until)
		a.advanced()
	}
}

// ahead reports whether this end has a later state than the other. The caller holds the lock.
func (e *edge) ahead(msg *message) bool {
	theirs := algo.EdgeDual{Epoch: msg.epoch, N: msg.n}
	return theirs.OlderThan(e.dual.Epoch, e.dual.N)
}

// inFlight reports whether the values that the other end lacks were sent in this session and have
// not arrived yet. The caller holds the lock.
func (e *edge) inFlight(msg *message) bool {
	return e.sentN == e.dual.N && msg.epoch == e.dual.Epoch && msg.n == e.dual.N-1
}

// handleState adopts the dual of an end that is ahead.
func (e *edge) handleState(ctx context.Context, msg *message) error {
	a := e.a
	if len(msg.values) != a.state.X.Len() {
		return e.lengthError(msg, a.state.X.Len())
	}
	a.mu.Lock()
	if e.dual.OlderThan(msg.epoch, msg.n) && !e.fresh {
		if a.frozen {
			a.opt.Log.Warn("an exchange was committed by the other end only: its values came after the end of the run",
				zap.Int("peer", e.peer))
		} else {
			a.opt.Log.Info("caught up with an edge", zap.Int("peer", e.peer), zap.Int("exchanges", msg.n-e.dual.N))
			a.interrupt()
			a.opt.Algo.Adopt(a.state, &e.dual, msg.epoch, msg.n, a.term(msg.values).V)
		}
	}
	e.peerEpoch, e.peerN = msg.epoch, msg.n
	e.inSync = e.dual.Epoch == msg.epoch && e.dual.N == msg.n
	a.notify()
	a.mu.Unlock()
	return e.sendHello(ctx, flagAnswer)
}

// handleModel stores the model of a neighbour for join.
func (e *edge) handleModel(msg *message) error {
	a := e.a
	a.mu.Lock()
	defer a.mu.Unlock()
	buffers := 0
	if a.opt.Buffers != nil {
		buffers = a.opt.Buffers.Len()
	}
	if len(msg.values) != a.state.X.Len() || len(msg.buffers) != buffers {
		return e.lengthError(msg, a.state.X.Len())
	}
	if a.joining {
		e.model, e.answered = msg, true
		a.notify()
	}
	return nil
}
