package link

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
)

// peer is the state of this node about another agent.
type peer struct {
	node *Node
	id   int

	mu sync.Mutex
	need
	known
	dialing
	link             *link // The connection; nil: none now.
	incarnation      uint64
	pastIncarnations map[uint64]bool // Earlier processes of the agent, which are refused.
	durable          bool            // The agent writes checkpoints: messages stay in the log until they are stable.
	session          uint64          // The number on which both ends agreed; 0: none.
	epoch            uint64          // The number of sessions so far. A session ends with its epoch.
	sessionEpoch     uint64          // The epoch of the latest session that was opened.
	refused          bool            // The peer belongs to another run, and this was logged.
	out              [numStreams]sendStream
	in               [numStreams]recvStream
	offences         [numStreams]offence
	counted          int           // The bytes of out[exchanges] that the node's logBytes contains.
	changed          chan struct{} // Closed and replaced whenever the state changes.
}

// need says whether there is to be a link to a peer, and how it is used.
type need struct {
	started bool      // The node has started.
	wanted  bool      // There is to be a link.
	used    time.Time // The time of the latest message in either direction.
	seldom  bool      // The session is used at evaluations only.
	awaits  int       // The number of waits for a message of the agent, or for room to send one.
}

// dialing is how a peer was dialed. The goroutine that dials it uses it.
type dialing struct {
	first       int       // The address that is dialed first, modulo their number.
	unreachable time.Time // The time at which a direct connection failed.
	unrelayed   int       // The number of failures to relay a link that is to be relayed.
}

// known holds the node's knowledge of the agent at the other end.
type known struct {
	lifetime
	lastHeard time.Time
	seen      seenPosition
	told      told // What agent 0 has told of the agent. It counts while there is to be no link.
}

func newPeer(n *Node, id int) *peer {
	now := time.Now()
	return &peer{node: n, id: id, changed: make(chan struct{}),
		known: known{lastHeard: now, seen: seenPosition{advances: advances{latest: now}}}}
}

// notify wakes all waiting goroutines. The caller holds the lock.
func (p *peer) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait releases the lock until the state changes or the context ends, and acquires it again. The
// caller holds the lock.
func (p *peer) wait(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.node.failed:
		return p.node.failure
	}
}

// send numbers a message and logs it, as soon as the window has room. A report for an agent that is
// not connected does not wait: no agent needs the coordinator to train on. The link sends the
// messages in the log, now or after reconnecting. send takes over the caller's reference to
// m.memory. The message of a session has its epoch.
func (p *peer) send(ctx context.Context, stream int, m sentMessage, epoch uint64) error {
	l, m, err := p.enqueue(ctx, stream, m, epoch)
	if l != nil {
		l.writeClaimed(stream, m)
	}
	return err
}

// enqueue is send up to the writing. If the caller is to write the message, which has its number
// now, enqueue returns the link.
func (p *peer) enqueue(ctx context.Context, stream int, m sentMessage, epoch uint64) (*link, sentMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := &p.out[stream]
	waits := func() bool {
		return (stream != sessions || epoch == p.epoch) && (stream != reports || p.link != nil) &&
			!o.hasRoom(o.next, m.body.size())
	}
	p.want()
	if stream != sessions && waits() {
		defer p.await()()
	}
	for waits() {
		if err := p.wait(ctx); err != nil {
			m.memory.release()
			return nil, m, err
		}
	}
	if stream == sessions && epoch != p.epoch {
		m.memory.release()
		return nil, m, dist.ErrSessionClosed
	}
	if p.drops(stream, &m) {
		m.memory.release()
		return nil, m, nil
	}
	m = o.append(m)
	p.node.stats.messages.Add(1)
	if stream != reports && !m.uncounted { // They tell of the run, and are no part of it.
		p.node.wireBytesSent.Add(p.node.wireBytes(m.body.size()))
	}
	if p.link.claim(stream, m) {
		return p.link, m, nil
	}
	p.link.wakeUp()
	return nil, m, nil
}

// receive waits for the next message of a stream and removes it. For a session it fails once its
// epoch is over.
func (p *peer) receive(ctx context.Context, stream int, epoch uint64) (*recvMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.arrival(ctx, stream, epoch); err != nil {
		return nil, err
	}
	return p.pop(stream), nil
}

// arrival waits until a message is at the head of a stream. The caller holds the lock.
func (p *peer) arrival(ctx context.Context, stream int, epoch uint64) error {
	in := &p.in[stream]
	if len(in.queue) == 0 {
		p.want()
	}
	if stream == exchanges && len(in.queue) == 0 {
		defer p.await()()
	}
	for {
		if stream == sessions && p.epoch != epoch {
			return dist.ErrSessionClosed
		}
		if len(in.queue) > 0 {
			return nil
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
}

// pop removes the message at the head of a stream. The caller holds the lock.
func (p *peer) pop(stream int) *recvMessage {
	in := &p.in[stream]
	m := in.pop(p.node.opt.Durable && stream != sessions)
	// Most exchanges are answered, and the answer carries the acknowledgement.
	if in.next-in.acked >= window/4 || in.ackDueBytes >= windowBytes/4 || stream != exchanges && len(in.queue) == 0 {
		p.link.acknowledge()
	}
	return m
}

// detach ends the connection before another one replaces it. Messages or acknowledgements that
// arrived over it after the handshake of the other one is composed would contradict that handshake.
func (p *peer) detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link.end(errSuperseded)
	p.link = nil
}

// hello returns this node's handshake for the peer, to which no link may be writing or reading.
func (p *peer) hello() hello {
	n := p.node
	h := hello{Run: n.opt.Run, From: n.opt.Self, Incarnation: n.incarnation, Connected: n.ConnectedPeers(),
		Durable: n.opt.Durable, Identity: n.opt.Identity, Life: n.opt.Life}
	p.mu.Lock()
	defer p.mu.Unlock()
	h.Session, h.Expects = p.session, p.life
	for s := range p.in {
		h.Next[s], h.Arrived[s] = p.in[s].next, p.in[s].arrived()
	}
	return h
}

// establish makes l, whose other end has sent h, the link of the peer, or returns why the peer is
// refused. If the two ends do not agree on the number of the session, the node that answers draws a
// new one, and both start the session anew: one of the processes is new, or one end has not heard
// of the latest handshake of the other.
func (p *peer) establish(l *link, h *hello, answers bool) *refusal {
	n := p.node
	if field, ours, theirs, differ := firstDifference(n.opt.Identity, h.Identity); differ {
		return &refusal{Field: field, Ours: ours, Theirs: theirs}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.refuseLife(h); r != nil {
		return r
	}
	if p.pastIncarnations[h.Incarnation] {
		return &refusal{Field: fieldProcess}
	}
	for s := range durableStreams {
		if first := p.out[s].firstKept(); h.Next[s] < first {
			return &refusal{Field: fieldPosition, Ours: fmt.Sprintf("the messages from number %d on", first),
				Theirs: fmt.Sprintf("at message %d", h.Next[s])}
		}
	}
	anew := h.Session != p.session || h.Session == 0
	for s := range p.out {
		if end := p.sendable(s, h); h.Arrived[s] > end && (s != sessions || !anew) {
			return &refusal{Field: fieldAhead, Ours: fmt.Sprintf("at most the messages before number %d", end),
				Theirs: fmt.Sprintf("at message %d", h.Arrived[s])}
		}
	}
	p.link.end(errSuperseded)
	if anew && answers {
		p.startSession(newIncarnation())
	} else if anew {
		p.startSession(h.Session)
	}
	again := p.incarnation != 0
	if !again { // notes of a stop are not sent again by a process that is started after it
		p.out[reports].skip(h.Arrived[reports])
	}
	p.retireIncarnation(h.Incarnation)
	p.incarnation, p.durable, p.lastHeard = h.Incarnation, h.Durable, time.Now()
	for s := range p.out {
		p.in[s].acked = 0
		if s == sessions && anew {
			continue
		}
		p.out[s].consumed, l.cursor[s] = h.Next[s], h.Arrived[s]
		p.out[s].sent = max(p.out[s].sent, h.Arrived[s])
	}
	p.link, p.wanted = l, true
	p.notify()
	if again {
		n.stats.reconnects.Add(1)
	}
	n.log.Debug("agent connected", zap.Int("peer", p.id), zap.Bool("again", again), zap.Bool("relayed", !l.direct))
	return nil
}

// sendable returns the first number of a stream that no process of this agent can have sent to the
// peer, whose handshake is h. If both processes have been connected before, it is the next number
// to send. If not, an earlier process may have sent more than this one knows, or the peer may
// expect reports from the number of its rows on. The caller holds the lock.
func (p *peer) sendable(stream int, h *hello) uint64 {
	o := &p.out[stream]
	if h.Incarnation == p.incarnation {
		return o.sent
	}
	return o.next + maxUnsaved
}

// startSession ends the present session and starts one with a number. The caller holds the lock.
func (p *peer) startSession(number uint64) {
	p.out[sessions], p.in[sessions], p.session = sendStream{}, recvStream{}, number
	p.epoch++
}

// retireIncarnation adds the peer's incarnation to the past ones, unless it is the present one. The
// caller holds the lock.
func (p *peer) retireIncarnation(present uint64) {
	const most = 1000 // restarts remembered
	if p.incarnation == 0 || p.incarnation == present {
		return
	}
	if p.pastIncarnations == nil || len(p.pastIncarnations) >= most {
		p.pastIncarnations = make(map[uint64]bool)
	}
	p.pastIncarnations[p.incarnation] = true
}

// refuse completes a refusal of the peer and logs the first one.
func (p *peer) refuse(r *refusal, h hello) {
	n := p.node
	r.Connected = n.ConnectedPeers()
	if r.Field == fieldLife {
		return
	}
	p.mu.Lock()
	first := !p.refused
	p.refused = true
	p.mu.Unlock()
	if first {
		n.stats.refused.Add(1)
		n.log.Warn("refused a node", zap.Int("says_it_is", p.id), zap.String("field", r.Field),
			zap.String("theirs", clip(r.Theirs)), zap.String("ours", clip(r.Ours)))
	}
	if !r.endsRefused() && n.isStranger(p.id, h.Connected) {
		n.fail(&HandshakeError{Peer: p.id, Field: r.Field, Ours: r.Ours, Theirs: r.Theirs})
	}
}

// refusedBy handles the text of a refusal by the peer, and returns why its link ends.
func (p *peer) refusedBy(text []byte) error {
	n := p.node
	var r refusal
	if err := decodeJSON(text, &r); err != nil {
		return err
	}
	if r.Field == fieldLife {
		return p.outlived(&r)
	}
	n.log.Warn("refused by another agent", zap.Int("peer", p.id), zap.String("field", clip(r.Field)),
		zap.String("theirs", clip(r.Ours)), zap.String("ours", clip(r.Theirs)))
	if r.endsRefused() || n.isStranger(p.id, r.Connected) {
		n.fail(&HandshakeError{Peer: p.id, Field: clip(r.Field), Ours: clip(r.Theirs), Theirs: clip(r.Ours)})
	}
	return errRefused
}

// isStranger reports whether this node, rather than another one whose run differs, is the one that
// does not belong to the run: fewer nodes are connected to it. If both have just started, the one
// of the lower rank decides.
func (n *Node) isStranger(other, connected int) bool {
	ours := n.ConnectedPeers()
	return ours < connected || ours == connected && other < n.opt.Self
}
