package nats

import (
	"context"
	"fmt"
	"time"

	"fspda/dist"
)

// A session is a stream between two incarnations. It is numbered, requested and retransmitted like
// the other streams, but it is not saved and starts anew when either process restarts. The
// iteration field of its frames holds a tag of the receiver's incarnation, so that frames of an
// earlier session are not mistaken for frames of this one.
type session struct {
	peer        *peer
	incarnation uint64 // of the peer
}

var _ dist.SessionOpener = (*Node)(nil)

// sessionTag returns the tag of frames for an incarnation.
func sessionTag(incarnation uint64) uint64 { return incarnation >> 1 } // the lowest bit is always set

func (n *Node) sessionTag() uint64 { return sessionTag(n.incarnation) }

// OpenSession implements [dist.SessionOpener].
func (n *Node) OpenSession(ctx context.Context, with int) (dist.Session, error) {
	p := n.peer(with)
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.connected || p.incarnation == p.sessionWith {
		if _, err := p.wait(ctx, nil); err != nil {
			return nil, fmt.Errorf("nats: agent %d cannot open a session with agent %d: %w", n.opt.Self, with, err)
		}
	}
	p.sessionWith = p.incarnation
	return &session{p, p.incarnation}, nil
}

// SilentFor implements [dist.SessionOpener].
func (n *Node) SilentFor(with int) time.Duration {
	p := n.peer(with)
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.lastHeard)
}

// resetSession discards the session with an earlier incarnation of the peer. The caller holds the
// lock.
func (p *peer) resetSession() {
	p.out[sessions] = sendStream{}
	p.in[sessions] = recvStream{messages: make(map[uint64]*recvMessage)}
}

func (t *session) Send(ctx context.Context, record []byte) error {
	n := t.peer.node
	if len(record) > n.bodyCodec.limit() {
		return fmt.Errorf("nats: a record of %d bytes; at most %d can be sent", len(record), n.bodyCodec.limit())
	}
	return t.peer.send(ctx, sessions, int(sessionTag(t.incarnation)), segments{n.opt.Compression.compress(record)},
		len(record), nil)
}

func (t *session) Recv(ctx context.Context) ([]byte, error) {
	p, err := t.peer.receive(ctx, sessions, t.incarnation)
	if err != nil {
		return nil, err
	}
	return decompress(p)
}
