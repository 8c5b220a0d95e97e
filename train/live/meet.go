package live

import (
	"context"

	"go.uber.org/zap"

	"fspda/train/algo"
)

// hello compares where the two ends of the edge stand. The one that is behind moves: to the other's
// epoch by itself, to its count by its dual, which the one ahead sends.
func (e *edge) hello(ctx context.Context, l *message) error {
	a := e.a
	a.mu.Lock()
	e.lost, e.ended, e.heardE, e.heardN = false, l.is(flagOver), l.epoch, l.n
	if l.pace > 0 {
		e.pace = l.pace
	}
	was := e.dual
	if !a.frozen {
		e.meet(l)
	}
	e.settled = e.dual.Epoch == l.epoch && e.dual.N == l.n
	if e.settled {
		e.fresh = false
	}
	var more []*message
	if e.ahead(l) && e.dual.N > 0 && !l.is(flagFresh) && !e.underway(l) {
		more = append(more, &message{kind: state, epoch: e.dual.Epoch, n: e.dual.N, t: a.desk.T,
			values: a.read(e.dual.S)})
	}
	if l.is(flagWant) && !a.joining && a.desk.T > 0 {
		more = append(more, &message{kind: model, t: a.desk.T, values: a.read(a.state.X),
			buffers: a.read(a.opt.Buffers)})
	}
	if l.t == 0 || l.is(flagJoining) {
		e.answered = true
	}
	greet := !l.is(flagAnswer) || was != e.dual
	a.tell()
	a.mu.Unlock()
	if greet {
		if err := e.greet(ctx, flagAnswer); err != nil {
			return err
		}
	}
	for _, m := range more {
		if err := e.say(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// meet moves to the other end's epoch, and to the end of the run where the other is there. The
// caller holds the lock.
func (e *edge) meet(l *message) {
	a := e.a
	switch {
	case l.is(flagFresh) && e.dual.N > 0:
		a.opt.Log.Info("an agent has come back without a memory: its edge begins anew", zap.Int("peer", e.peer))
		a.opt.Algo.Drop(a.state, &e.dual, e.dual.Epoch+1)
	case l.epoch > e.dual.Epoch:
		if e.dual.N > 0 {
			a.opt.Log.Info("was dropped by another agent: the edge begins anew", zap.Int("peer", e.peer))
		}
		a.opt.Algo.Drop(a.state, &e.dual, l.epoch)
	}
	if l.is(flagOver) && !a.over() && !a.joining {
		a.interrupt()
		a.desk.T = max(a.desk.T, a.opt.Until)
		a.passed()
	}
}

// ahead tells whether this end of the edge is at a later state than the other. The caller holds the
// lock.
func (e *edge) ahead(l *message) bool {
	theirs := algo.EdgeDual{Epoch: l.epoch, N: l.n}
	return theirs.OlderThan(e.dual.Epoch, e.dual.N)
}

// underway tells whether what the other end lacks is in values that this talk has yet to deliver.
// The caller holds the lock.
func (e *edge) underway(l *message) bool {
	return e.flying == e.dual.N && l.epoch == e.dual.Epoch && l.n == e.dual.N-1
}

// adopt takes over the dual of an end that is ahead.
func (e *edge) adopt(ctx context.Context, l *message) error {
	a := e.a
	if len(l.values) != a.state.X.Len() {
		return e.wrong(l, a.state.X.Len())
	}
	a.mu.Lock()
	if e.dual.OlderThan(l.epoch, l.n) && !e.fresh {
		if a.frozen {
			a.opt.Log.Warn("an exchange was committed by the other end alone: it came back after the end of the run",
				zap.Int("peer", e.peer))
		} else {
			a.opt.Log.Info("caught up with an edge", zap.Int("peer", e.peer), zap.Int("exchanges", l.n-e.dual.N))
			a.interrupt()
			a.opt.Algo.Adopt(a.state, &e.dual, l.epoch, l.n, a.term(l.values).V)
		}
	}
	e.heardE, e.heardN = l.epoch, l.n
	e.settled = e.dual.Epoch == l.epoch && e.dual.N == l.n
	a.tell()
	a.mu.Unlock()
	return e.greet(ctx, flagAnswer)
}

// joined takes the model of a neighbour.
func (e *edge) joined(l *message) error {
	a := e.a
	a.mu.Lock()
	defer a.mu.Unlock()
	buffers := 0
	if a.opt.Buffers != nil {
		buffers = a.opt.Buffers.Len()
	}
	if len(l.values) != a.state.X.Len() || len(l.buffers) != buffers {
		return e.wrong(l, a.state.X.Len())
	}
	if a.joining {
		e.model, e.answered = l, true
		a.tell()
	}
	return nil
}
