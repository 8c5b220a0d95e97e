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
	e.dropped, e.peerEpoch, e.peerN = false, msg.epoch, msg.n
	e.peerAtEnd, e.peerFinal = msg.has(flagAtEnd), msg.has(flagFinal)
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
	} else if a.final && e.peerFinal {
		a.opt.Log.Warn("both ends of an edge have finished with different counts, "+
			"because each was silent for the other",
			zap.Int("peer", e.peer), zap.Int("exchanges", e.dual.N), zap.Int("theirs", msg.n))
	}
	var answers []*message // written now, before goroutines that notify wakes change the state
	if !msg.has(flagAnswer) || was != e.dual {
		answers = append(answers, e.hello(flagAnswer))
	}
	if e.mustSendState(msg) {
		m := &message{kind: state, epoch: e.dual.Epoch, n: e.dual.N, t: a.clock.T, values: a.read(e.dual.S)}
		if a.final {
			m.flags = flagFinal
		}
		answers = append(answers, m)
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

// mustSendState reports whether the other end, which has sent a hello, lacks the state of this one:
// it is behind and no values are on their way to it, or this end has finished and the other has
// not. The caller holds the lock.
func (e *edge) mustSendState(msg *message) bool {
	switch {
	case msg.has(flagFresh | flagFinal):
		return false
	case e.a.final:
		return !e.inSync
	}
	return e.ahead(msg) && e.dual.N > 0 && !e.inFlight(msg)
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

// handleState adopts the dual of an end that is ahead, or that has finished: the exchanges that
// this end counts beyond it have not happened.
func (e *edge) handleState(ctx context.Context, msg *message) error {
	a := e.a
	if len(msg.values) != a.state.X.Len() {
		return e.lengthError(msg, a.state.X.Len())
	}
	a.mu.Lock()
	if a.frozen { // nothing may change; a process that is started again says in its hello which exchanges it lacks
		a.mu.Unlock()
		return nil
	}
	if (msg.has(flagFinal) || e.dual.OlderThan(msg.epoch, msg.n)) && !e.fresh {
		text := "caught up with an edge"
		if msg.has(flagFinal) {
			text = "took the state of an edge from its other end, which has finished"
		}
		a.opt.Log.Info(text, zap.Int("peer", e.peer), zap.Int("exchanges", msg.n-e.dual.N))
		a.interrupt()
		e.countMissed(msg)
		a.opt.Algo.Adopt(a.state, &e.dual, msg.epoch, msg.n, a.term(msg.values).V)
		e.dual.Epoch = msg.epoch // an earlier one, if the other end has finished
	}
	e.peerEpoch, e.peerN = msg.epoch, msg.n
	e.inSync = e.dual.Epoch == msg.epoch && e.dual.N == msg.n
	a.notify()
	a.mu.Unlock()
	return e.sendHello(ctx, flagAnswer)
}

// countMissed counts the exchanges that this end lacks. It sent its values in each of them: in an
// offer whose answer was lost, or as an earlier process after its checkpoint. The caller holds the
// lock.
func (e *edge) countMissed(msg *message) {
	missed := msg.n
	switch {
	case msg.epoch < e.dual.Epoch: // this end has counted the exchanges of an earlier epoch
		return
	case msg.epoch == e.dual.Epoch:
		missed -= e.dual.N
	}
	for range max(0, missed) {
		e.a.opt.Trainer.Exchanged(e.peer, e.a.opt.Mask.Len())
	}
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
