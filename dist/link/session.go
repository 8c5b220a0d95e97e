package link

import (
	"context"
	"fmt"
	"time"

	"fspda/dist"
)

// A session is a stream between two processes. It is numbered and sent again like the other
// streams, but it is not saved and starts anew when either process restarts.
type session struct {
	peer      *peer
	epoch     uint64
	uncounted bool // Its records are not counted in WireBytes.
}

// OpenEvaluations is OpenSession for records that tell of the run, and are no part of it.
func (n *Node) OpenEvaluations(ctx context.Context, with int) (dist.CheckedSession, error) {
	s, err := n.OpenSession(ctx, with)
	if err != nil {
		return nil, err
	}
	own := s.(*session)
	own.uncounted = true
	own.peer.mu.Lock()
	defer own.peer.mu.Unlock()
	own.peer.seldom = true
	return own, nil
}

func (n *Node) OpenSession(ctx context.Context, with int) (dist.Session, error) {
	p := n.peer(with)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want()
	for p.epoch == p.sessionEpoch {
		if err := p.wait(ctx); err != nil {
			return nil, fmt.Errorf("link: agent %d cannot open a session with agent %d: %w", n.opt.Self, with, err)
		}
	}
	p.sessionEpoch = p.epoch
	return &session{p, p.epoch, false}, nil
}

func (n *Node) SilentFor(with int) time.Duration {
	p := n.peer(with)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silentFor()
}

func (t *session) Send(ctx context.Context, record []byte) error {
	n := t.peer.node
	if len(record) > n.bodyCodec.limit() {
		return fmt.Errorf("link: a record of %d bytes; at most %d can be sent", len(record), n.bodyCodec.limit())
	}
	return t.peer.send(ctx, sessions, sentMessage{body: segments{n.opt.Compression.compress(record)},
		rawSize: len(record), uncounted: t.uncounted}, t.epoch)
}

func (t *session) Take(ctx context.Context, take func(record []byte) error) error {
	return t.peer.takeRecord(ctx, sessions, t.epoch, func(_ int, record []byte) error { return take(record) })
}

func (t *session) Recv(ctx context.Context) ([]byte, error) {
	m, err := t.peer.receive(ctx, sessions, t.epoch)
	if err != nil {
		return nil, err
	}
	return decompress(m)
}
