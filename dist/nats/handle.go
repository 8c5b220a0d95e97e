package nats

import (
	"time"

	"go.uber.org/zap"
)

// handle processes a frame of this peer. An invalid frame is an error and changes nothing.
func (p *peer) handle(f *frame) error {
	authentic, err := p.authenticated(f)
	if err != nil {
		return err
	}
	switch f.kind {
	case kindHello:
		return p.handleHelloFrame(f, authentic)
	case kindRefuse:
		return p.handleRefusalFrame(f, authentic)
	}
	p.mu.Lock()
	known := authentic && p.connected && f.incarnation == p.incarnation
	if known {
		p.lastHeard = time.Now()
		p.updateProgress(f)
	}
	p.mu.Unlock()
	if !known {
		return nil // of another incarnation, or before the handshake
	}
	if f.kind != kindAck && f.stream == sessions && f.t != p.node.sessionTag() {
		return nil // meant for an earlier incarnation of this process
	}
	switch f.kind {
	case kindData:
		p.handleData(f)
	case kindAck:
		a, err := decodeAck(f.payload)
		if err != nil {
			return err
		}
		p.handleAck(a, f.t == p.node.sessionTag())
	case kindRequest:
		p.retransmit(f)
	}
	return nil
}

func (p *peer) handleHelloFrame(f *frame, authentic bool) error {
	h, err := decodeHello(f.payload)
	if err == nil && h.Incarnation != f.incarnation {
		err = &FrameError{Got: "a handshake whose header and payload name different incarnations"}
	}
	if err == nil && !authentic {
		authentic, err = p.authenticateHandshake(f, h.Cert)
	}
	if err == nil {
		p.handleHello(h, authentic)
	}
	return err
}

func (p *peer) handleRefusalFrame(f *frame, authentic bool) error {
	r, err := decodeRefusal(f.payload)
	if err == nil && !authentic {
		authentic, err = p.authenticateHandshake(f, r.Cert)
	}
	if err == nil && authentic && r.Incarnation == p.node.incarnation {
		p.handleRefusal(r)
	}
	return err
}

// updateProgress applies the acknowledgement in the header of a frame. The caller holds the lock.
func (p *peer) updateProgress(f *frame) {
	if p.out[exchanges].acknowledge(f.next, f.stable) {
		p.notify()
	}
}

// handleData stores a fragment of a message.
func (p *peer) handleData(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := &p.in[f.stream]
	if f.seq < in.next {
		in.acked = 0 // the sender has missed the acknowledgement: send it again
		return
	}
	if in.addFragment(f, p.node.bodyCodec.limit(), p.node.bodies.get) {
		p.notify()
	}
}

// handleAck applies an acknowledgement; its session part only if it is about the current session.
func (p *peer) handleAck(a ack, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := false
	for s := range p.out {
		if s == sessions && !current {
			continue
		}
		changed = p.out[s].acknowledge(a.next[s], a.stable[s]) || changed
	}
	if changed {
		p.notify()
	}
	if a.full {
		select {
		case p.node.checkpointRequests <- struct{}{}:
		default:
		}
	}
}

// retransmit sends a message again, from the first missing byte.
func (p *peer) retransmit(f *frame) {
	p.mu.Lock()
	r, ok := p.out[f.stream].find(f.seq)
	r.memory.retain()
	p.mu.Unlock()
	defer r.memory.release()
	if !ok || uint64(f.offset) > uint64(r.size) {
		return // not sent yet
	}
	p.node.stats.retransmitted.Add(1)
	p.transmit(int(f.stream), r, int(f.offset))
}

// handleRefusal processes a refusal by the peer. If both nodes have just started, the one of the
// lower rank decides.
func (p *peer) handleRefusal(r refusal) {
	ours := p.node.ConnectedPeers()
	p.node.log.Warn("refused by another agent", zap.Int("peer", p.id), zap.String("field", clip(r.Field)),
		zap.String("theirs", clip(r.Ours)), zap.String("ours", clip(r.Theirs)))
	if ours < r.Connected || ours == r.Connected && p.id < p.node.opt.Self {
		p.node.fail(&HandshakeError{Peer: p.id, Field: clip(r.Field), Ours: clip(r.Theirs), Theirs: clip(r.Ours)})
	}
}
