package live

import (
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

// edge is this end of one edge, and the talk that goes over it.
type edge struct {
	a     *Agent
	peer  int
	clock rng.Stream

	// Under the agent's lock.
	dual     algo.EdgeDual
	fresh    bool // nothing is known of the edge
	settled  bool // the other end has said that it stands where this one does
	lost     bool // it was dropped, and has not been heard since
	ended    bool // the other end is at the end of the run
	heardN   int  // its count when it last said hello
	heardE   int  // and its epoch
	answered bool // it has said whether it has a model for one who joins
	model    *message
	pace     time.Duration // of its gradients
	phase    phase

	// Of the talk's own goroutine.
	talk      dist.Session
	calls     uint32 // number of the latest call of the talk
	deadline  time.Time
	abandoned bool
	exchange  exchange
	saidEpoch int
	saidOver  bool
	flying    int // the count that the latest values of this talk told
}

// phase is how far an exchange is.
type phase int

const (
	idle    phase = iota
	calling       // the caller awaits the offer
	offered       // the called end awaits the values
)

// exchange is what an end keeps of the exchange under way.
type exchange struct {
	t      int
	own    *dist.Buffer
	behind bool // this end had to catch up: it reads its mailbox at once
	coords []uint32
	mask   device.Index // nil: all
}

// serve talks to the other end, one life of it after the other.
func (e *edge) serve(ctx context.Context) {
	for ctx.Err() == nil {
		talk, err := e.a.opt.Network.OpenSession(ctx, e.peer)
		if err != nil {
			return // the network is gone, or the agent
		}
		err = e.converse(ctx, talk)
		e.hangUp()
		var bad *MessageError
		if errors.As(err, &bad) {
			e.a.opt.Log.Error("an edge is given up", zap.Int("peer", e.peer), zap.Error(err))
			return
		}
	}
}

// hangUp forgets the exchange under way.
func (e *edge) hangUp() {
	e.a.mu.Lock()
	defer e.a.mu.Unlock()
	e.release()
	e.settled = false
	e.a.tell()
}

// release ends an exchange. The caller holds the lock.
func (e *edge) release() {
	if e.a.busy == e {
		e.a.busy = nil
	}
	if e.exchange.own != nil {
		e.exchange.own.Release()
		e.exchange.own = nil
	}
	e.phase, e.abandoned = idle, false
	if e.a.over() {
		e.a.tell()
	}
}

// closed tells whether both ends are at the end of the run and stand at the same count. The caller
// holds the lock.
func (e *edge) closed() bool {
	return e.lost || e.ended && e.phase == idle && e.heardE == e.dual.Epoch && e.heardN == e.dual.N
}

// converse is one talk, to its end.
func (e *edge) converse(ctx context.Context, talk dist.Session) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.talk, e.calls, e.saidEpoch, e.saidOver, e.flying = talk, 0, -1, false, -1
	heard, failed := make(chan []byte, 16), make(chan error, 1)
	go func() {
		for {
			b, err := talk.Recv(ctx)
			if err != nil {
				failed <- err
				return
			}
			select {
			case heard <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	ring, alarm := time.NewTimer(e.gap()), time.NewTimer(time.Hour)
	defer ring.Stop()
	defer alarm.Stop()
	for {
		news, err := e.update(ctx)
		if err != nil {
			return err
		}
		if e.phase != idle && !e.abandoned {
			alarm.Reset(time.Until(e.deadline))
		} else {
			alarm.Stop()
		}
		select {
		case b := <-heard:
			err = e.hear(ctx, b)
		case err = <-failed:
		case <-ring.C:
			ring.Reset(e.gap())
			err = e.ring(ctx)
		case <-alarm.C:
			e.giveUp()
		case <-news:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// gap is the time to the next ring. The end that is called has none.
func (e *edge) gap() time.Duration {
	a := e.a
	rate := a.opt.CallRate * float64(a.opt.Agents) / 2 / float64(a.opt.Edges)
	if a.opt.Self > e.peer || rate == 0 {
		return time.Hour
	}
	a.mu.Lock()
	unit := a.pace
	if unit == 0 || e.pace > 0 && e.pace < unit {
		unit = e.pace
	}
	a.mu.Unlock()
	if unit == 0 {
		unit = 10 * time.Millisecond // nobody knows yet
	}
	return time.Duration(math.Min(e.clock.Exp()/rate*float64(unit), float64(time.Hour)))
}

// update says hello where something has changed that the other end should know, and returns what to
// wait for.
func (e *edge) update(ctx context.Context) (<-chan struct{}, error) {
	a := e.a
	a.mu.Lock()
	news, say := a.news, e.saidEpoch != e.dual.Epoch || e.saidOver != a.over()
	a.mu.Unlock()
	if !say {
		return news, nil
	}
	return news, e.greet(ctx, 0)
}

// greet says hello.
func (e *edge) greet(ctx context.Context, flags uint8) error {
	a := e.a
	a.mu.Lock()
	l := message{kind: hello, flags: flags, epoch: e.dual.Epoch, n: e.dual.N, t: a.desk.T, pace: min(a.pace, time.Hour)}
	if e.fresh {
		l.flags |= flagFresh
	}
	if a.joining {
		l.flags |= flagWant | flagJoining
	}
	if a.over() {
		l.flags |= flagOver
	}
	e.saidEpoch, e.saidOver = e.dual.Epoch, a.over()
	a.mu.Unlock()
	return e.say(ctx, &l)
}

func (e *edge) say(ctx context.Context, l *message) error {
	return e.talk.Send(ctx, l.bytes(e.a.opt.Format))
}

// ring calls the other end, if both can exchange.
func (e *edge) ring(ctx context.Context) error {
	a := e.a
	a.mu.Lock()
	if a.busy != nil || a.desk.Full || a.joining || a.stopped || a.frozen || a.over() || a.pace == 0 ||
		e.phase != idle || !e.settled {
		a.mu.Unlock()
		return nil
	}
	a.busy, e.phase = e, calling
	e.calls++
	e.deadline = time.Now().Add(a.opt.Timeouts.Exchange)
	l := message{kind: call, call: e.calls, epoch: e.dual.Epoch, n: e.dual.N, t: a.desk.T, pace: min(a.pace, time.Hour)}
	a.opt.Trainer.Called()
	a.mu.Unlock()
	return e.say(ctx, &l)
}

// giveUp lets go of the mailbox of an exchange that takes too long. What comes of it is decided all
// the same: a caller will refuse the offer, a called end will take the values when they come.
func (e *edge) giveUp() {
	e.a.mu.Lock()
	defer e.a.mu.Unlock()
	if e.a.busy == e {
		e.a.busy = nil
	}
	e.abandoned = true
}

// hear does what a letter asks for.
func (e *edge) hear(ctx context.Context, b []byte) error {
	a := e.a
	most := bounds{dim: a.state.X.Len(), until: a.opt.Until, wire: a.opt.Format}
	if a.opt.Buffers != nil {
		most.buffers = a.opt.Buffers.Len()
	}
	l, bad := readLetter(b, most)
	if bad != "" {
		return &MessageError{From: e.peer, Got: bad}
	}
	switch l.kind {
	case hello:
		return e.hello(ctx, &l)
	case state:
		return e.adopt(ctx, &l)
	case model:
		return e.joined(&l)
	case call:
		return e.answer(ctx, &l)
	case offer:
		return e.decide(ctx, &l)
	case values:
		return e.follow(ctx, &l)
	case decline, cancel:
		a.mu.Lock()
		defer a.mu.Unlock()
		if want := map[kind]phase{decline: calling, cancel: offered}[l.kind]; e.phase == want && l.call == e.calls {
			e.release()
		}
	}
	return nil
}

// wrong is the error of a letter whose vectors have not the length that they should.
func (e *edge) wrong(l *message, want int) error {
	return &MessageError{From: e.peer, Got: l.kind.String() + " with a vector of another length"}
}
