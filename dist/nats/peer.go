package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
)

// Intervals and delays. They only bound how long a loss takes to be repaired.
const (
	tickInterval = 25 * time.Millisecond // of the node's ticker
	// before a receiver requests a message; doubles with each request
	minRequestDelay   = 100 * time.Millisecond
	maxRequestBackoff = 8                      // bounds the delay, in units of the first one
	heartbeatInterval = 500 * time.Millisecond // a node sends at least one frame in this time
	minHelloInterval  = 50 * time.Millisecond  // between handshakes that are not answered; doubles each time
	maxHelloInterval  = time.Second
)

// peer is the state of this node about another agent.
type peer struct {
	node *Node
	id   int

	mu               sync.Mutex
	incarnation      uint64 // of its process; 0: unknown
	connected        bool   // the handshake is complete: it has repeated our incarnation, so its frames are no replay
	durable          bool   // it writes checkpoints: messages stay in the log until they are stable
	lastHeard        time.Time
	sessionWith      uint64          // incarnation of the latest session
	refused          bool            // it belongs to another run, and this was logged
	pastIncarnations map[uint64]bool // replayed frames of these are ignored
	certificate      []byte          // from its handshake
	secret           []byte          // shared with the holder of the certificate
	keys             *pairKeys       // between the two incarnations; nil without certificates
	out              [numStreams]sendStream
	in               [numStreams]recvStream
	changed          chan struct{} // closed and replaced whenever the state changes

	nextHello     time.Time
	helloInterval time.Duration
	nextHeartbeat time.Time

	link *directLink // for large messages; nil: none
}

func newPeer(n *Node, id int) *peer {
	p := &peer{node: n, id: id, changed: make(chan struct{}), helloInterval: minHelloInterval, lastHeard: time.Now()}
	for s := range p.in {
		p.in[s].messages = make(map[uint64]*recvMessage)
	}
	if n.opt.Direct.Listen != "" {
		p.link = newDirectLink(p)
	}
	return p
}

// notify wakes all waiting goroutines. The caller holds the lock.
func (p *peer) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait releases the lock until the state changes, the timer fires or the context ends, and acquires
// it again. The caller holds the lock.
func (p *peer) wait(ctx context.Context, after <-chan time.Time) (timeout bool, err error) {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-changed:
	case <-after:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-p.node.failed:
		return false, p.node.cause()
	}
	return false, nil
}

// send numbers a message, logs it and transmits it, as soon as the window has room. It takes over
// the caller's reference to memory.
func (p *peer) send(ctx context.Context, stream, t int, body segments, raw int, memory *bodyRef) error {
	p.mu.Lock()
	o := &p.out[stream]
	for !o.hasRoom(body.size()) {
		if _, err := p.wait(ctx, nil); err != nil {
			p.mu.Unlock()
			memory.release()
			return err
		}
	}
	if stream == sessions && uint64(t) != sessionTag(p.incarnation) {
		p.mu.Unlock()
		memory.release()
		return dist.ErrSessionClosed
	}
	r := o.append(t, body, raw, memory)
	memory.retain()
	defer memory.release()
	p.node.stats.messages.Add(1)
	p.node.wireBytesSent.Add(p.node.wireBytes(r.size))
	send := p.connected && r.seq >= o.consumed // after a restart the peer may have consumed it already
	p.mu.Unlock()
	if send {
		p.transmit(stream, r, 0)
	}
	return nil
}

// transmit sends a message from byte offset from on, over the direct link if it is large and there
// is one.
func (p *peer) transmit(stream int, r sentMessage, from int) {
	if !p.link.enqueue(stream, r, from) {
		p.sendOverNATS(stream, r, from)
	}
}

// sendOverNATS sends the fragments of a message over NATS.
func (p *peer) sendOverNATS(stream int, r sentMessage, from int) {
	for f := range frames(stream, r, from, p.node.chunk) {
		p.publish(f)
	}
}

// frames returns the fragments of a message as frames. A fragment lies within one segment of the
// body. All iterations yield the same frame, modified.
func frames(stream int, r sentMessage, from, chunk int) iter.Seq[*frame] {
	return func(yield func(*frame) bool) {
		f := frame{kind: kindData, stream: uint8(stream), seq: r.seq, t: r.t, total: uint32(r.size),
			raw: uint32(r.rawSize)}
		if r.rawSize != r.size {
			f.flags = flagCompressed
		}
		for {
			f.offset, f.payload = uint32(from), r.body.at(from, chunk)
			if from += len(f.payload); !yield(&f) || from >= r.size {
				return
			}
		}
	}
}

// publish sends a frame over NATS to the peer's current incarnation. If authentication is required
// and there is no such incarnation, the peer would drop the frame.
func (p *peer) publish(f *frame) {
	keys := p.currentKeys()
	if p.node.auth != nil && keys == nil {
		return
	}
	p.fillHeader(f)
	p.node.publish(f, keys)
}

// currentKeys returns the keys of the peer's current incarnation.
func (p *peer) currentKeys() *pairKeys {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys
}

// publishTo sends a frame over NATS to an incarnation that need not be connected.
func (p *peer) publishTo(incarnation uint64, f *frame) {
	p.fillHeader(f)
	p.node.publish(f, p.keysFor(incarnation))
}

// fillHeader sets the fields common to all frames to this peer.
func (p *peer) fillHeader(f *frame) {
	n := p.node
	f.from, f.to, f.run, f.incarnation = uint32(n.opt.Self), uint32(p.id), n.runHash, n.incarnation
	if f.kind != kindData {
		f.total, f.raw = uint32(len(f.payload)), uint32(len(f.payload))
	}
	p.mu.Lock()
	in := &p.in[exchanges]
	f.next, f.stable = in.next, in.stable
	in.acked = max(in.acked, in.next)
	p.mu.Unlock()
}

// receive waits for the next message of a stream. For a session it fails once the peer has another
// incarnation.
func (p *peer) receive(ctx context.Context, stream int, incarnation uint64) (*recvMessage, error) {
	var timer *time.Timer
	var alarm <-chan time.Time
	delay := p.node.opt.requestDelay
	p.mu.Lock()
	defer p.mu.Unlock()
	in := &p.in[stream]
	seen := in.fragments
	for {
		if stream == sessions && p.incarnation != incarnation {
			return nil, dist.ErrSessionClosed
		}
		if m, ok := in.pop(p.node.opt.Durable && stream != sessions); ok {
			p.acknowledge(stream)
			return m, nil
		}
		if timer == nil {
			timer = time.NewTimer(delay)
			defer timer.Stop()
			alarm = timer.C
		}
		timeout, err := p.wait(ctx, alarm)
		if err != nil {
			return nil, err
		}
		if timeout {
			if in.fragments == seen {
				p.requestMessage(stream, in.next, in.missingFrom())
				delay = min(2*delay, maxRequestBackoff*p.node.opt.requestDelay)
			}
			seen = in.fragments
			timer.Reset(delay)
		}
	}
}

// requestMessage requests a message again. The caller holds the lock.
func (p *peer) requestMessage(stream int, seq uint64, offset int) {
	if !p.connected {
		return
	}
	f := &frame{kind: kindRequest, stream: uint8(stream), seq: seq, offset: uint32(offset)}
	if stream == sessions {
		f.t = sessionTag(p.incarnation)
	}
	p.node.stats.requested.Add(1)
	p.mu.Unlock()
	p.publish(f)
	p.mu.Lock()
}

// acknowledge sends an acknowledgement at once if the sender's window may be nearly full. Otherwise
// the next frame to the peer carries it, or the ticker sends it. The caller holds the lock.
func (p *peer) acknowledge(stream int) {
	in := &p.in[stream]
	if in.next-in.acked < window/4 {
		return
	}
	in.acked = in.next
	p.mu.Unlock()
	p.sendAck()
	p.mu.Lock()
}

// sendAck sends an acknowledgement of all streams.
func (p *peer) sendAck() {
	p.mu.Lock()
	var a ack
	for s := range p.in {
		in := &p.in[s]
		a.next[s], a.stable[s], in.acked = in.next, in.stable, in.next
	}
	a.full = p.out[exchanges].bytes > p.node.opt.LogBytes
	tag := sessionTag(p.incarnation)
	p.nextHeartbeat = time.Now().Add(heartbeatInterval)
	p.mu.Unlock()
	p.publish(&frame{kind: kindAck, t: tag, payload: a.append(nil)})
}

// flushAcks sends what has not been acknowledged yet.
func (p *peer) flushAcks() {
	p.mu.Lock()
	pending := false
	for s := range p.in {
		pending = pending || p.connected && p.in[s].next > p.in[s].acked
	}
	p.mu.Unlock()
	if pending {
		p.sendAck()
	}
}

// tick sends handshakes and acknowledgements that are due.
func (p *peer) tick(now time.Time) {
	p.mu.Lock()
	var hello, ack bool
	incarnation := p.incarnation
	if !p.connected && now.After(p.nextHello) {
		hello = true
		p.nextHello = now.Add(p.helloInterval)
		p.helloInterval = min(2*p.helloInterval, maxHelloInterval)
	}
	if p.connected {
		ack = now.After(p.nextHeartbeat)
		for s := range p.in {
			ack = ack || p.in[s].next > p.in[s].acked
		}
	}
	p.mu.Unlock()
	if hello {
		p.sendHello(incarnation, false)
	}
	if ack {
		p.sendAck()
	}
}

// sendHello sends a handshake to an incarnation, 0 if none is known.
func (p *peer) sendHello(echo uint64, settled bool) {
	h := hello{Incarnation: p.node.incarnation, Echo: echo, Connected: settled, Durable: p.node.opt.Durable,
		Identity: p.node.opt.Identity, Direct: p.node.directOffer(), Cert: p.node.auth.cert()}
	p.mu.Lock()
	for s := range p.in {
		h.Next[s] = p.in[s].next
	}
	p.mu.Unlock()
	text, err := json.Marshal(h)
	if err != nil {
		panic("nats: cannot encode a handshake: " + err.Error()) // cannot happen: its fields are plain
	}
	p.publishTo(echo, &frame{kind: kindHello, payload: text})
}

// handleHello answers a handshake. The peer counts as connected only if it repeats our incarnation,
// which a replayed handshake cannot, and if it is authentic where authentication is required.
func (p *peer) handleHello(h hello, authentic bool) {
	if field, ours, theirs, differ := firstDifference(p.node.opt.Identity, h.Identity); differ && authentic {
		p.sendRefusal(h.Incarnation, field, ours, theirs)
		return
	}
	p.mu.Lock()
	if p.pastIncarnations[h.Incarnation] {
		p.mu.Unlock()
		return
	}
	if h.Echo != p.node.incarnation || !authentic {
		known := p.connected && p.incarnation == h.Incarnation
		p.mu.Unlock()
		p.sendHello(h.Incarnation, known)
		return
	}
	p.link.setOffer(h.Direct)
	lost, lacks := p.establish(h)
	var again [numStreams][]sentMessage
	if !lacks {
		again = p.unacknowledged()
	}
	p.mu.Unlock()
	if lacks {
		p.sendRefusal(h.Incarnation, "stream position",
			fmt.Sprintf("not before message %d, as its checkpoint was", lost[0]),
			fmt.Sprintf("before message %d: it must continue from its newest checkpoint", lost[1]))
		return
	}
	if !h.Connected {
		p.sendHello(h.Incarnation, true)
	}
	for s, records := range again {
		for _, r := range records {
			p.transmit(s, r, 0)
			r.memory.release()
		}
	}
}

// establish makes an incarnation of the peer the current one. If the peer needs a message that is
// not kept any more, it does nothing and returns lacks, with the first kept message and the one
// that the peer needs. The caller holds the lock.
func (p *peer) establish(h hello) (lost [2]uint64, lacks bool) {
	p.lastHeard = time.Now()
	if p.connected && p.incarnation == h.Incarnation {
		return lost, false
	}
	for s := range durableStreams {
		if first := p.out[s].firstKept(); h.Next[s] < first {
			return [2]uint64{first, h.Next[s]}, true
		}
	}
	back := p.incarnation != 0
	p.retireIncarnation()
	if p.node.auth != nil {
		p.keys = p.node.auth.deriveKeys(p.secret, p.id, h.Incarnation)
	}
	p.incarnation, p.connected, p.durable = h.Incarnation, true, h.Durable
	p.helloInterval = minHelloInterval
	for s := range durableStreams {
		p.out[s].consumed = h.Next[s]
		p.in[s].dropPartial()
	}
	p.resetSession()
	p.notify()
	logAt := p.node.log.Debug
	if back {
		logAt = p.node.log.Info
	}
	logAt("agent connected", zap.Int("peer", p.id), zap.Bool("again", back))
	return lost, false
}

// retireIncarnation adds the peer's incarnation to the past ones. The caller holds the lock.
func (p *peer) retireIncarnation() {
	const most = 1000 // restarts remembered
	if p.incarnation == 0 {
		return
	}
	if p.pastIncarnations == nil || len(p.pastIncarnations) >= most {
		p.pastIncarnations = make(map[uint64]bool)
	}
	p.pastIncarnations[p.incarnation] = true
}

// unacknowledged returns the messages that the peer has not consumed, with a reference to each. The
// caller holds the lock.
func (p *peer) unacknowledged() (again [numStreams][]sentMessage) {
	for s := range p.out {
		for _, r := range p.out[s].log {
			if r.seq >= p.out[s].consumed {
				r.memory.retain()
				again[s] = append(again[s], r)
			}
		}
	}
	return again
}

// sendRefusal tells a node of another run which property differs.
func (p *peer) sendRefusal(incarnation uint64, field, ours, theirs string) {
	p.mu.Lock()
	first := !p.refused
	p.refused = true
	p.mu.Unlock()
	if first {
		p.node.stats.refused.Add(1)
		p.node.log.Warn("refused a node of another run", zap.Int("says_it_is", p.id), zap.String("field", field),
			zap.String("theirs", theirs), zap.String("ours", ours))
	}
	text, err := json.Marshal(refusal{Field: field, Ours: ours, Theirs: theirs, Connected: p.node.ConnectedPeers(),
		Incarnation: incarnation,
		Cert:        p.node.auth.cert()})
	if err != nil {
		return
	}
	p.publishTo(incarnation, &frame{kind: kindRefuse, payload: text})
}
