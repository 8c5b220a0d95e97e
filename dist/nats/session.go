package nats

import (
	"context"
	"fmt"
	"time"

	"fspda/dist"
)

// A talk is a stream between two lives: it is numbered, asked for and repeated as the others are,
// but it is kept nowhere, and begins anew with every life of either process. Its frames name the
// life of the receiver that they are for, in the place of the iteration, so that nothing of an
// earlier talk is mistaken for a part of this one.
type session struct {
	peer *peer
	life uint64 // of the peer
}

var _ dist.SessionOpener = (*Node)(nil)

// talkTag is what frames to a process say of its life.
func talkTag(life uint64) uint64 { return life >> 1 } // the lowest bit is always set

func (n *Node) talkTag() uint64 { return talkTag(n.life) }

// Talk implements [dist.Switchboard].
func (n *Node) OpenSession(ctx context.Context, with int) (dist.Session, error) {
	p := n.peer(with)
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.settled || p.life == p.talked {
		if _, err := p.wait(ctx, nil); err != nil {
			return nil, fmt.Errorf("nats: agent %d waits for a talk with agent %d: %w", n.opt.Self, with, err)
		}
	}
	p.talked = p.life
	return &session{p, p.life}, nil
}

// Silent implements [dist.Switchboard].
func (n *Node) SilentFor(with int) time.Duration {
	p := n.peer(with)
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.heard)
}

// beginTalk forgets the talk with an earlier life of the peer. The caller holds the lock.
func (p *peer) beginTalk() {
	p.out[talks] = outLine{}
	p.in[talks] = inLine{parcels: make(map[uint64]*parcel)}
}

func (t *session) Send(ctx context.Context, record []byte) error {
	n := t.peer.node
	if len(record) > n.codec.limit() {
		return fmt.Errorf("nats: a record of %d bytes; at most %d travel", len(record), n.codec.limit())
	}
	return t.peer.post(ctx, talks, int(talkTag(t.life)), segments{n.opt.Compression.pack(record)}, len(record), nil)
}

func (t *session) Recv(ctx context.Context) ([]byte, error) {
	p, err := t.peer.take(ctx, talks, t.life)
	if err != nil {
		return nil, err
	}
	return unpack(p)
}
