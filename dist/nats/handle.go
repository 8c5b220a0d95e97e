package nats

import (
	"time"

	"go.uber.org/zap"
)

// handle does what a frame of this peer asks for. What cannot be understood is an error, and
// changes nothing.
func (p *peer) handle(f *frame) error {
	proven, err := p.proven(f)
	if err != nil {
		return err
	}
	switch f.kind {
	case kindHello:
		h, err := decodeHello(f.piece)
		if err != nil {
			return err
		}
		if h.Life != f.life {
			return &FrameError{Got: "a handshake in another's name"}
		}
		if !proven {
			if proven, err = p.shows(f, h.Cert); err != nil {
				return err
			}
		}
		p.greeted(h, proven)
		return nil
	case kindRefuse:
		r, err := decodeRefusal(f.piece)
		if err != nil {
			return err
		}
		if !proven {
			if proven, err = p.shows(f, r.Cert); err != nil {
				return err
			}
		}
		if proven && r.Life == p.node.life {
			p.refusedBy(r)
		}
		return nil
	}
	p.mu.Lock()
	known := proven && p.settled && f.life == p.life
	if known {
		p.heard = time.Now()
		p.progressed(f)
	}
	p.mu.Unlock()
	if !known {
		return nil // of another life, or before the handshake
	}
	if f.kind != kindAck && f.stream == talks && f.t != p.node.talkTag() {
		return nil // meant for an earlier life of this process
	}
	switch f.kind {
	case kindData:
		p.piece(f)
	case kindAck:
		a, err := decodeAck(f.piece)
		if err != nil {
			return err
		}
		p.acknowledged(a, f.t == p.node.talkTag())
	case kindWant:
		p.repeat(f)
	}
	return nil
}

// progressed notes how far the peer is with the exchanges. The caller holds the lock.
func (p *peer) progressed(f *frame) {
	if p.out[exchanges].heard(f.got, f.stable) {
		p.wake()
	}
}

// piece takes a piece of a message.
func (p *peer) piece(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := &p.in[f.stream]
	if f.seq < in.next {
		in.said = 0 // the sender has not heard that it was taken: say it again
		return
	}
	if in.accept(f, p.node.codec.limit(), p.node.bodies.get) {
		p.wake()
	}
}

// acknowledged notes how far the peer is; with the talk only where it speaks of the one that is on.
func (p *peer) acknowledged(a ack, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := false
	for s := range p.out {
		if s == talks && !current {
			continue
		}
		changed = p.out[s].heard(a.next[s], a.stable[s]) || changed
	}
	if changed {
		p.wake()
	}
	if a.full {
		select {
		case p.node.wanted <- struct{}{}:
		default:
		}
	}
}

// repeat sends a message again, from the byte on that is missing.
func (p *peer) repeat(f *frame) {
	p.mu.Lock()
	r, ok := p.out[f.stream].find(f.seq)
	r.lent.hold()
	p.mu.Unlock()
	defer r.lent.release()
	if !ok || uint64(f.offset) > uint64(r.size) {
		return // not said yet
	}
	p.node.stats.repeated.Add(1)
	p.transmit(int(f.stream), r, int(f.offset))
}

// refusedBy hears that this node is a stranger to the peer. Where both have just come, the one of
// the lower rank is right.
func (p *peer) refusedBy(r refusal) {
	ours := p.node.ConnectedPeers()
	p.node.log.Warn("refused by another agent", zap.Int("peer", p.id), zap.String("field", clip(r.Field)),
		zap.String("theirs", clip(r.Ours)), zap.String("ours", clip(r.Theirs)))
	if ours < r.Settled || ours == r.Settled && p.id < p.node.opt.Self {
		p.node.fail(&HandshakeError{Peer: p.id, Field: clip(r.Field), Ours: clip(r.Theirs), Theirs: clip(r.Ours)})
	}
}
