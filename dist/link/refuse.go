package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
)

// offence is something invalid that a peer has sent. It ends when a valid message of the same
// stream is taken.
type offence struct {
	reason        error
	since, latest time.Time
}

const (
	// holdOff is the time for which a peer that has sent something invalid may not connect again.
	holdOff = time.Second
	// frameOffence is the time for which an invalid frame, which is not sent again, is told of.
	frameOffence = time.Minute
)

// offends records something invalid that the peer has sent. The caller holds the lock.
func (p *peer) offends(stream int, err error) {
	o := &p.offences[stream]
	now := time.Now()
	if o.reason == nil {
		o.since = now
		p.node.log.Warn("an agent has sent something invalid; its connection was closed", zap.Int("peer", p.id),
			zap.Error(err))
	}
	o.reason, o.latest = err, now
	p.node.stats.dropped.Add(1)
}

// refuseMessage refuses the next message of a stream: it and those behind it are dropped, and the
// link ends. After the next handshake the peer sends them again, as they are or valid.
func (p *peer) refuseMessage(stream int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in[stream].queue = nil
	p.offends(stream, err)
	p.link.end(err)
	p.link = nil
	p.notify()
}

// peek waits for the next message of a stream and leaves it there. For a session it fails once its
// epoch is over.
func (p *peer) peek(ctx context.Context, stream int, epoch uint64) (*recvMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.arrival(ctx, stream, epoch); err != nil {
		return nil, err
	}
	return p.in[stream].queue[0], nil
}

// take removes the message that peek has returned, unless the agent was retired meanwhile.
func (p *peer) take(stream int, m *recvMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in := &p.in[stream]; len(in.queue) == 0 || in.queue[0] != m {
		return
	}
	p.pop(stream)
	p.offences[stream].reason = nil
}

// holdOff is how long the peer may still not connect.
func (p *peer) holdOff() (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.offences {
		wait = max(wait, holdOff-time.Since(o.latest))
	}
	return wait
}

// Offence returns since when and why the messages of an agent are refused; nil if they are not. An
// agent that has sent one invalid frame counts for a minute.
func (n *Node) Offence(agent int) (lasting time.Duration, reason error) {
	p := n.peer(agent)
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.offences {
		o := &p.offences[s]
		_, frame := errors.AsType[*FrameError](o.reason)
		if frame && time.Since(o.latest) > frameOffence {
			o.reason = nil
		}
		if o.reason == nil {
			continue
		}
		if reason = o.reason; !frame {
			lasting = max(lasting, time.Since(o.since))
		}
	}
	return lasting, reason
}

func (n *Node) RecvChecked(ctx context.Context, self, from, t int, check func(dist.Message) error) (dist.Message,
	error) {
	return n.checked(ctx, self, from, t, check, true)
}

func (n *Node) PeekChecked(ctx context.Context, self, from, t int, check func(dist.Message) error) (dist.Message,
	error) {
	return n.checked(ctx, self, from, t, check, false)
}

// checked waits for the message of iteration t from an agent that check accepts, and takes it or
// leaves it.
func (n *Node) checked(ctx context.Context, self, from, t int, check func(dist.Message) error,
	take bool) (dist.Message, error) {
	p := n.checkReceiver(self, from)
	for {
		msg, err := p.peek(ctx, exchanges, 0)
		if err != nil {
			return dist.Message{}, fmt.Errorf("link: agent %d awaiting iteration %d from agent %d: %w", self, t, from,
				err)
		}
		m, err := n.message(msg, from, t, true, take)
		if err == nil {
			if err = check(m); err != nil {
				m.Release()
			}
		}
		if err == nil && take {
			p.take(exchanges, msg)
		}
		if err == nil {
			return m, nil
		}
		err = fmt.Errorf("link: the message of iteration %d from agent %d was refused: %w", t, from, err)
		p.refuseMessage(exchanges, err)
		if bad, ok := errors.AsType[*dist.BadValueError](err); ok { // The agent has diverged.
			bad.From, bad.T = from, t
			return dist.Message{}, err
		}
	}
}

// checkReceiver returns the peer from which agent self receives.
func (n *Node) checkReceiver(self, from int) *peer {
	if self != n.opt.Self {
		panic(fmt.Sprintf("link: the node of agent %d cannot receive for agent %d", n.opt.Self, self))
	}
	return n.peer(from)
}

// message decodes a message of iteration t. With finite it refuses values that are not finite. With
// last nothing reads its body later.
func (n *Node) message(msg *recvMessage, from, t int, finite, last bool) (dist.Message, error) {
	m := dist.Message{T: int(msg.t), From: from, To: n.opt.Self, Codec: n.opt.Codec}
	done := func() {}
	if last {
		done = func() { n.bodies.put(msg.body) }
	}
	body, err := decompress(msg)
	if err == nil {
		m.Values, m.Arrives, err = n.bodyCodec.decode(m.T, body, finite, done)
	}
	if err != nil {
		return dist.Message{}, err
	}
	return m, dist.CheckIteration(m, t)
}

// TakeReport waits for the next report of another agent and passes it to take. A report about which
// take returns an [dist.InvalidError] is refused, and awaited again; any other error ends the wait,
// and leaves the report where it is.
func (n *Node) TakeReport(ctx context.Context, from int, take func(t int, record []byte) error) error {
	return n.peer(from).takeRecord(ctx, reports, 0, take)
}

// takeRecord is TakeReport of any stream of records.
func (p *peer) takeRecord(ctx context.Context, stream int, epoch uint64, take func(int, []byte) error) error {
	for {
		msg, err := p.peek(ctx, stream, epoch)
		if err != nil {
			return err
		}
		if msg.total == 0 { // It stands for one that an earlier process sent.
			p.take(stream, msg)
			continue
		}
		record, err := decompress(msg)
		if err != nil {
			err = dist.Invalidf("%v", err)
		} else {
			err = take(int(msg.t), record)
		}
		if err == nil {
			p.take(stream, msg)
			return nil
		}
		if _, invalid := errors.AsType[*dist.InvalidError](err); !invalid {
			return err
		}
		p.refuseMessage(stream, fmt.Errorf("link: a report of agent %d was refused: %w", p.id, err))
	}
}
