package link

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// link is a gRPC stream between this node and a peer, and its state. One goroutine reads, one
// writes. The messages between the cursor of a stream and the end of its log are written. They are
// new ones of the agent, and old ones that a reconnected peer lacks.
type link struct {
	peer   *peer
	stream frameStream
	direct bool          // The connection is not relayed.
	wake   chan struct{} // Receives a value when there may be something to write. The capacity is 1.
	done   chan struct{} // Closed by end.
	once   sync.Once
	err    error // The reason why the link has ended. It is valid when done is closed.

	partial *recvMessage // The message that the reading goroutine assembles.
	writing sync.Mutex   // The goroutine that writes to the stream holds it.

	// The lock of the peer guards these.
	cursor [numStreams]uint64 // The number of the message of each stream that is written next.
	ackDue bool               // An acknowledgement is written as soon as possible.
	// beatDue says that an acknowledgement is written before the next message: a heartbeat, which
	// tells the position of the agent.
	beatDue bool
}

// frameStream is either end of a gRPC stream.
type frameStream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

var (
	errSuperseded = errors.New("link: another connection of the same agent has replaced this one")
	errRefused    = errors.New("link: refused")
	errDrained    = errors.New("link: the node closes")
)

func newLink(p *peer, stream frameStream, direct bool) *link {
	return &link{peer: p, stream: stream, direct: direct, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// end ends the link. Only the first call has an effect. A nil link has ended.
func (l *link) end(err error) {
	if l != nil {
		l.once.Do(func() {
			l.err = err
			close(l.done)
		})
	}
}

func (l *link) wakeUp() {
	if l == nil {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// acknowledge lets the link write an acknowledgement. The caller holds the lock of the peer.
func (l *link) acknowledge() {
	if l != nil {
		l.ackDue = true
		l.wakeUp()
	}
}

// run reads and writes until the link ends, and returns why.
func (l *link) run() error {
	go func() { l.end(l.read()) }()
	written := make(chan struct{})
	go func() {
		defer close(written)
		switch err := l.write(); {
		case errors.Is(err, io.EOF): // The other end has ended the stream. Frames that arrived before are read.
			<-l.done
		case !errors.Is(err, errDrained):
			l.end(err)
		}
	}()
	select {
	case <-l.done:
	case <-written:
	}
	c, ok := l.stream.(interface{ CloseSend() error })
	// The lock is kept, so that no sender writes after the end of the stream.
	if ok && l.open() && l.writing.TryLock() && c.CloseSend() == nil {
		select { // The server reads everything that was sent.
		case <-l.done:
		case <-time.After(drainTimeout):
		}
	}
	l.end(errDrained)
	p := l.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == l {
		p.link = nil
		p.notify()
	}
	return l.err
}

func (l *link) open() bool {
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// write writes until the link ends or the node closes.
func (l *link) write() error {
	n := l.peer.node
	heartbeat := time.NewTimer(0)
	defer heartbeat.Stop()
	var latest, due time.Time // Of heartbeats.
	for closing := false; ; {
		for {
			some, err := l.writeNext(closing)
			if err != nil {
				return err
			}
			if !some {
				break
			}
		}
		if closing {
			return errDrained
		}
		fired := false
		select {
		case <-l.wake:
		case <-heartbeat.C:
			fired = true
		case <-l.done:
			return l.err
		case <-n.open.Done():
			l.peer.mu.Lock()
			l.ackDue = true
			l.peer.mu.Unlock()
			closing = true
		}
		now, next := time.Now(), latest.Add(l.interval())
		if !next.After(now) {
			l.peer.mu.Lock()
			l.beatDue = true
			l.peer.mu.Unlock()
			latest = now
			next = now.Add(l.interval())
		}
		if fired || next.Before(due) {
			due = next
			heartbeat.Reset(next.Sub(now))
		}
	}
}

// interval returns the time between two heartbeats as of now.
func (l *link) interval() time.Duration {
	l.peer.mu.Lock()
	defer l.peer.mu.Unlock()
	if l.peer.busy() {
		return l.peer.node.opt.heartbeat
	}
	return l.peer.node.opt.Pause
}

// writeNext writes the next message, or an acknowledgement if one is due, and reports whether there
// was anything to write.
func (l *link) writeNext(closing bool) (some bool, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	p := l.peer
	p.mu.Lock()
	if l.beatDue {
		l.beatDue = false
		p.mu.Unlock()
		return true, l.writeBeat()
	}
	for s := range p.out {
		o := &p.out[s]
		m, ok := o.find(l.cursor[s])
		if !ok || !o.mayGo(s, m.seq, m.size) {
			continue
		}
		l.advance(s, m)
		p.mu.Unlock()
		defer m.memory.release()
		return true, l.writeMessage(s, m)
	}
	due := l.ackDue
	p.mu.Unlock()
	if !due {
		return false, nil
	}
	return !closing, l.writeAck()
}

// advance moves the cursor of a stream beyond a message, which the caller writes and then releases.
// The caller holds the lock of the peer.
func (l *link) advance(stream int, m sentMessage) {
	o := &l.peer.out[stream]
	if l.cursor[stream]++; m.seq < o.sent {
		l.peer.node.stats.resent.Add(1)
	}
	o.sent = max(o.sent, l.cursor[stream])
	l.peer.use()
	m.memory.retain()
}

// maxOwnWrite is the size of the largest message that its sender writes itself. gRPC takes it
// without waiting unless as many bytes wait in its buffers.
const maxOwnWrite = 64 << 10

// claim reports whether the caller, who has appended a message, writes it itself by writeClaimed: it
// is short, nothing goes before it, and nobody else writes. The message then needs no switch to the
// writing goroutine. The caller holds the lock of the peer.
func (l *link) claim(stream int, m sentMessage) bool {
	if l == nil || m.size > maxOwnWrite || l.cursor[stream] != m.seq || l.beatDue || !l.open() ||
		!l.peer.out[stream].mayGo(stream, m.seq, m.size) || !l.writing.TryLock() {
		return false
	}
	l.advance(stream, m)
	return true
}

// writeClaimed writes a message that the caller has claimed. The caller does not hold the lock of
// the peer.
func (l *link) writeClaimed(stream int, m sentMessage) {
	defer m.memory.release()
	defer l.writing.Unlock()
	if err := l.writeMessage(stream, m); err != nil && !errors.Is(err, io.EOF) { // The reading goroutine learns why.
		l.end(err)
	}
}

// writeAck writes an acknowledgement, with the position of the agent.
func (l *link) writeAck() error {
	h := header{kind: kindAck}
	l.peer.node.setPosition(&h)
	return l.writeFrame(&h, nil, nil)
}

// writeBeat writes a heartbeat: an acknowledgement, or one with news of other agents.
func (l *link) writeBeat() error {
	n := l.peer.node
	if !n.tells() {
		return l.writeAck()
	}
	text := n.latestNews()
	h := header{kind: kindNews, total: uint32(len(text)), raw: uint32(len(text))}
	n.setPosition(&h)
	return l.writeFrame(&h, text, nil)
}

// writeMessage writes the fragments of a message. A fragment lies within one segment of the body.
func (l *link) writeMessage(stream int, m sentMessage) error {
	h := header{kind: kindData, stream: uint8(stream), seq: m.seq, t: m.t, total: uint32(m.size),
		raw: uint32(m.rawSize)}
	compressed := m.rawSize != m.size
	for from := 0; ; {
		if h.flags = 0; compressed {
			h.flags = flagCompressed
		}
		part := m.body.at(from, l.peer.node.opt.chunk)
		from += len(part)
		if err := l.writeFrame(&h, part, m.memory); err != nil || from >= m.size {
			return err
		}
	}
}

// writeFrame completes a header with the acknowledgements and writes a frame.
func (l *link) writeFrame(h *header, payload []byte, memory *bodyRef) error {
	p := l.peer
	p.mu.Lock()
	if p.link != l {
		p.mu.Unlock()
		return errSuperseded
	}
	for s := range p.in {
		in := &p.in[s]
		h.ack.next[s], h.ack.stable[s], in.acked, in.ackDueBytes = in.next, in.stable, in.next, 0
	}
	if p.node.logIsFull(p) {
		h.flags |= flagFull
	}
	l.ackDue = false
	p.mu.Unlock()
	p.node.stats.sentFrames.Add(1)
	p.node.stats.sentBytes.Add(uint64(headerSize + len(payload)))
	return l.stream.SendMsg(&outFrame{header: h.append(make([]byte, 0, headerSize)), payload: payload, memory: memory})
}

// writeControl writes a handshake or a refusal.
func (l *link) writeControl(kind frameKind, v any) error {
	text := encodeJSON(v)
	h := header{kind: kind, total: uint32(len(text)), raw: uint32(len(text))}
	return l.stream.SendMsg(&outFrame{header: h.append(nil), payload: text})
}

// read reads until the stream ends. A frame that is not valid ends it.
func (l *link) read() error {
	for {
		var f inFrame
		if err := l.stream.RecvMsg(&f); err != nil {
			return err
		}
		err := l.handle(&f)
		f.free()
		if _, invalid := errors.AsType[*FrameError](err); invalid {
			l.peer.mu.Lock()
			l.peer.offends(exchanges, err)
			l.peer.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

// readControl reads the first frame, with which the other end introduces itself.
func (l *link) readControl() (kind frameKind, text []byte, err error) {
	var f inFrame
	if err := l.stream.RecvMsg(&f); err != nil {
		return 0, nil, err
	}
	defer f.free()
	h, err := f.decode()
	if err == nil && (h.kind != kindHello && h.kind != kindRefuse || f.data.Len() > headerSize+maxHello) {
		err = &FrameError{Got: fmt.Sprintf("kind %d of %d bytes before the handshake", h.kind, f.data.Len())}
	}
	return h.kind, f.appendPayload(nil), err
}

func (l *link) handle(f *inFrame) error {
	h, err := f.decode()
	if err != nil {
		return err
	}
	n := l.peer.node
	n.stats.gotFrames.Add(1)
	n.stats.gotBytes.Add(uint64(f.data.Len()))
	if l.direct {
		n.stats.direct.Add(1)
	}
	if err := l.progress(&h, l.completes(&h, f)); err != nil {
		return err
	}
	switch h.kind {
	case kindAck:
		return nil
	case kindData:
		return l.assemble(&h, f)
	case kindNews:
		return n.hear(l.peer.id, f.appendPayload(nil))
	case kindRefuse: // A node that has dialed this one refuses the handshake that answered it.
		return l.peer.refusedBy(f.appendPayload(nil))
	}
	return &FrameError{Got: fmt.Sprintf("kind %d after the handshake", h.kind)}
}

// completes reports whether a frame is the last fragment of its message.
func (l *link) completes(h *header, f *inFrame) bool {
	got := f.data.Len() - headerSize
	if l.partial != nil {
		got += len(l.partial.body)
	}
	return h.kind == kindData && got == int(h.total)
}

// progress applies the acknowledgements of a frame. It leaves it to the caller to notify waiting
// goroutines if a message is complete.
func (l *link) progress(h *header, complete bool) error {
	p := l.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != l {
		return errSuperseded
	}
	p.lastHeard = time.Now()
	if h.kind == kindData {
		p.use()
	}
	if h.kind == kindAck || h.kind == kindNews {
		if err := p.follow(h); err != nil {
			return err
		}
	}
	changed, waiting := false, false
	for s := range p.out {
		waiting = waiting || l.cursor[s] < p.out[s].next
		if h.ack.next[s] > l.cursor[s] {
			return &FrameError{Got: fmt.Sprintf("message %d of stream %d was consumed before it was sent",
				h.ack.next[s], s)}
		}
		changed = p.out[s].acknowledge(h.ack.next[s], h.ack.stable[s]) || changed
	}
	if changed && !complete {
		p.notify()
	}
	if changed && waiting {
		l.wakeUp() // The window has room.
	}
	if h.flags&flagFull != 0 {
		select {
		case p.node.checkpointRequests <- struct{}{}:
		default:
		}
	}
	return nil
}

// assemble appends a fragment to its message, and hands the message over when it is complete.
func (l *link) assemble(h *header, f *inFrame) error {
	m := l.partial
	if m == nil {
		if err := l.check(h); err != nil {
			return err
		}
		m = &recvMessage{seq: h.seq, t: h.t, stream: h.stream, compressed: h.flags&flagCompressed != 0,
			rawSize: int(h.raw), total: int(h.total), body: l.peer.node.bodies.get(int(h.total))}
		l.partial = m
	}
	if m.seq != h.seq || m.stream != h.stream || m.total != int(h.total) || m.rawSize != int(h.raw) ||
		len(m.body)+f.data.Len()-headerSize > m.total {
		return &FrameError{Got: fmt.Sprintf("a fragment of message %d of stream %d within message %d of stream %d",
			h.seq, h.stream, m.seq, m.stream)}
	}
	if m.body = f.appendPayload(m.body); len(m.body) < m.total {
		return nil
	}
	l.partial = nil
	p := l.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != l {
		return errSuperseded
	}
	p.in[h.stream].take(m)
	if h.stream != sessions { // The process may send these while its agent hangs.
		p.seen.add()
	}
	p.notify()
	return nil
}

// check checks the first fragment of a message before memory is allocated for it.
func (l *link) check(h *header) error {
	p := l.peer
	limit := uint64(p.node.bodyCodec.limit())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != l {
		return errSuperseded
	}
	if in := &p.in[h.stream]; h.seq != in.arrived() || !in.hasRoom(int(h.total)) || uint64(h.total) > limit ||
		uint64(h.raw) > limit {
		return &FrameError{Got: fmt.Sprintf("message %d of stream %d with %d bytes, expected message %d with at most "+
			"%d bytes", h.seq, h.stream, max(h.total, h.raw), in.arrived(), limit)}
	}
	return nil
}
