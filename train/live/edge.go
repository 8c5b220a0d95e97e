package live

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/train/algo"
)

// edge is this end of an edge, with the session to the other end.
type edge struct {
	a     *Agent
	peer  int
	clock rng.Stream

	// Guarded by the agent's lock.
	dual    algo.EdgeDual
	fresh   bool // nothing is known of the edge
	inSync  bool // the other end has the same epoch and count
	dropped bool // the edge was dropped, and the other end has not been heard since
	otherEnd
	phase phase

	sessionState
}

// otherEnd is the knowledge of an edge about its other end. The agent's lock guards it.
type otherEnd struct {
	peerAtEnd        bool     // it has reached the end of the run
	peerFinal        bool     // it has finished
	peerN            int      // count in its last hello
	peerEpoch        int      // epoch in its last hello
	answered         bool     // it has sent its model, or said that it has none
	model            *message // model for an agent that joins
	peerGradientTime time.Duration
}

// sessionState is the state of a session. Only the session's goroutine uses it.
type sessionState struct {
	session   dist.Session
	callID    uint32 // number of the latest call in this session
	deadline  time.Time
	abandoned bool
	exchange  exchange
	sentEpoch int
	sentAtEnd bool
	sentN     int // the count in the latest values sent in this session
}

// phase is the progress of an exchange.
type phase int

const (
	idle    phase = iota
	calling       // the caller awaits the offer
	offered       // the called end awaits the values
)

// exchange is the state of the current exchange.
type exchange struct {
	t      int
	own    *dist.Buffer
	behind bool // this end has advanced to the common time: it applies its mailbox at once
	coords []uint32
	mask   device.Index // nil: all coordinates
}

// serve opens one session after the other with the other end.
func (e *edge) serve(ctx context.Context) {
	for ctx.Err() == nil {
		session, err := e.a.opt.Network.OpenSession(ctx, e.peer)
		if err != nil {
			return // the network or the agent is closed
		}
		err = e.runSession(ctx, session)
		e.closeSession()
		if _, ok := errors.AsType[*MessageError](err); ok {
			e.a.opt.Log.Error("an edge is closed after an invalid message", zap.Int("peer", e.peer), zap.Error(err))
			return
		}
	}
}

// closeSession discards the current exchange.
func (e *edge) closeSession() {
	e.a.mu.Lock()
	defer e.a.mu.Unlock()
	e.release()
	e.inSync = false
	e.a.notify()
}

// release ends an exchange and frees the mailbox. The caller holds the lock.
func (e *edge) release() {
	if e.a.reservedBy == e {
		e.a.reservedBy = nil
	}
	if e.exchange.own != nil {
		e.exchange.own.Release()
		e.exchange.own = nil
	}
	e.phase, e.abandoned = idle, false
	if e.a.atEnd() {
		e.a.notify()
	}
}

// closed reports whether both ends have reached the end of the run with the same count, or the
// other end has finished before this one had a history. The caller holds the lock.
func (e *edge) closed() bool {
	same := e.peerEpoch == e.dual.Epoch && e.peerN == e.dual.N
	return e.dropped || e.peerAtEnd && e.phase == idle && (same || e.peerFinal && e.fresh)
}

// runSession handles the events of one session until it ends.
func (e *edge) runSession(ctx context.Context, session dist.Session) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.session, e.callID, e.sentEpoch, e.sentAtEnd, e.sentN = session, 0, -1, false, -1
	received, failed := make(chan []byte, 16), make(chan error, 1)
	go func() {
		for {
			b, err := session.Recv(ctx)
			if err != nil {
				failed <- err
				return
			}
			select {
			case received <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	ring, alarm := time.NewTimer(e.nextRing()), time.NewTimer(time.Hour)
	defer ring.Stop()
	defer alarm.Stop()
	for {
		changed, err := e.sendUpdate(ctx)
		if err != nil {
			return err
		}
		if e.phase != idle && !e.abandoned {
			alarm.Reset(time.Until(e.deadline))
		} else {
			alarm.Stop()
		}
		select {
		case b := <-received:
			err = e.handle(ctx, b)
		case err = <-failed:
		case <-ring.C:
			ring.Reset(e.nextRing())
			err = e.ring(ctx)
		case <-alarm.C:
			e.abandon()
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// nextRing returns the time until the edge's clock rings. The clock of the called end never rings.
func (e *edge) nextRing() time.Duration {
	a := e.a
	rate := a.opt.CallRate * float64(a.opt.Agents) / 2 / float64(a.opt.Edges)
	if a.opt.Self > e.peer || rate == 0 {
		return time.Hour
	}
	a.mu.Lock()
	unit := a.gradientTime
	if unit == 0 || e.peerGradientTime > 0 && e.peerGradientTime < unit {
		unit = e.peerGradientTime
	}
	a.mu.Unlock()
	unit = cmp.Or(unit, 10*time.Millisecond) // unknown to both ends
	return time.Duration(math.Min(e.clock.Exp()/rate*float64(unit), float64(time.Hour)))
}

// sendUpdate sends hello if the other end does not know the current epoch or the end of the run. It
// returns the channel that announces the next change.
func (e *edge) sendUpdate(ctx context.Context) (<-chan struct{}, error) {
	a := e.a
	a.mu.Lock()
	changed, outdated := a.changed, e.sentEpoch != e.dual.Epoch || e.sentAtEnd != a.atEnd()
	a.mu.Unlock()
	if !outdated {
		return changed, nil
	}
	return changed, e.sendHello(ctx, 0)
}

// sendHello sends a hello with the state of this end.
func (e *edge) sendHello(ctx context.Context, flags uint8) error {
	e.a.mu.Lock()
	msg := e.hello(flags)
	e.a.mu.Unlock()
	return e.send(ctx, msg)
}

// hello returns a hello with the state of this end. The caller holds the lock.
func (e *edge) hello(flags uint8) *message {
	a := e.a
	msg := &message{kind: hello, flags: flags, epoch: e.dual.Epoch, n: e.dual.N, t: a.clock.T,
		gradientTime: min(a.gradientTime, time.Hour)}
	if e.fresh {
		msg.flags |= flagFresh
	}
	if a.joining {
		msg.flags |= flagWant | flagJoining
	}
	if a.atEnd() {
		msg.flags |= flagAtEnd
	}
	if a.final {
		msg.flags |= flagFinal
	}
	e.sentEpoch, e.sentAtEnd = e.dual.Epoch, a.atEnd()
	return msg
}

func (e *edge) send(ctx context.Context, msg *message) error {
	return e.session.Send(ctx, msg.encode(e.a.opt.Format))
}

// ring calls the other end, if both ends can exchange.
func (e *edge) ring(ctx context.Context) error {
	a := e.a
	a.mu.Lock()
	if a.reservedBy != nil || a.clock.Full || a.joining || a.stopped || a.frozen || a.atEnd() || a.gradientTime == 0 ||
		e.phase != idle || !e.inSync {
		a.mu.Unlock()
		return nil
	}
	a.reservedBy, e.phase = e, calling
	e.callID++
	e.deadline = time.Now().Add(a.opt.Timeouts.Exchange)
	msg := message{kind: call, call: e.callID, epoch: e.dual.Epoch, n: e.dual.N, t: a.clock.T,
		gradientTime: min(a.gradientTime, time.Hour)}
	a.opt.Trainer.Called()
	a.mu.Unlock()
	return e.send(ctx, &msg)
}

// abandon frees the mailbox of an exchange that takes too long. The exchange is still decided: a
// caller will cancel the offer, a called end will add the values when they arrive.
func (e *edge) abandon() {
	e.a.mu.Lock()
	defer e.a.mu.Unlock()
	if e.a.reservedBy == e {
		e.a.reservedBy = nil
	}
	e.abandoned = true
}

// handle processes a message.
func (e *edge) handle(ctx context.Context, b []byte) error {
	a := e.a
	allowed := limits{dim: a.state.X.Len(), until: a.opt.Until, wire: a.opt.Format}
	if a.opt.Buffers != nil {
		allowed.buffers = a.opt.Buffers.Len()
	}
	msg, invalid := decodeMessage(b, allowed)
	if invalid != "" {
		return &MessageError{From: e.peer, Got: invalid}
	}
	switch msg.kind {
	case hello:
		return e.handleHello(ctx, &msg)
	case state:
		return e.handleState(ctx, &msg)
	case model:
		return e.handleModel(&msg)
	case call:
		return e.handleCall(ctx, &msg)
	case offer:
		return e.handleOffer(ctx, &msg)
	case values:
		return e.handleValues(ctx, &msg)
	case decline, cancel:
		a.mu.Lock()
		defer a.mu.Unlock()
		if want := map[kind]phase{decline: calling,
			cancel: offered}[msg.kind]; e.phase == want && msg.call == e.callID {
			e.release()
		}
	}
	return nil
}

// lengthError returns the error for a message with a vector of the wrong length.
func (e *edge) lengthError(msg *message, want int) error {
	return &MessageError{From: e.peer, Got: msg.kind.String() + " with a vector of another length"}
}
