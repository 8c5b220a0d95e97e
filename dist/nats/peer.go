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

// How often things are said. They only bound how long a loss is felt.
const (
	tick = 25 * time.Millisecond // of the node's clock
	// a receiver waits so long before it asks for a message, and then twice as long each time
	firstAsk   = 100 * time.Millisecond
	askTimes   = 8                      // up to so many times the first wait
	beat       = 500 * time.Millisecond // a node says that it lives
	firstHello = 50 * time.Millisecond  // to somebody who does not answer, and then twice as long each time
	lastHello  = time.Second
)

// peer is another agent, as this node knows it.
type peer struct {
	node *Node
	id   int

	mu      sync.Mutex
	life    uint64 // of its process; 0: never heard of
	settled bool   // it has said our life: what it says now is not a replay
	durable bool   // it keeps checkpoints: messages stay in the log until they are part of one
	heard   time.Time
	talked  uint64          // the life that the latest talk is with
	refused bool            // it belongs to another run, and this was logged
	former  map[uint64]bool // lives that are over: whoever repeats what they said is not the peer
	shown   []byte          // the certificate that it showed
	secret  []byte          // in common with the holder of that
	keys    *seals          // between the two lives, where there are seals
	out     [streams]outLine
	in      [streams]inLine
	changed chan struct{} // closed, and replaced, when anything changes that somebody may wait for

	nextHello  time.Time
	helloEvery time.Duration
	nextBeat   time.Time

	way *way // of large messages; nil: none
}

func newPeer(n *Node, id int) *peer {
	p := &peer{node: n, id: id, changed: make(chan struct{}), helloEvery: firstHello, heard: time.Now()}
	for s := range p.in {
		p.in[s].parcels = make(map[uint64]*parcel)
	}
	if n.opt.Direct.Listen != "" {
		p.way = newWay(p)
	}
	return p
}

// wake tells all who wait. The caller holds the lock.
func (p *peer) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait lets go of the lock until something changes, the time has come or the context ends. The
// caller holds the lock and has it again.
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
	case <-p.node.dead:
		return false, p.node.cause()
	}
	return false, nil
}

// post numbers a message, keeps it and sends it, as soon as there is room. It takes over what the
// memory of the body is lent by.
func (p *peer) post(ctx context.Context, stream, t int, body segments, raw int, memory *lent) error {
	p.mu.Lock()
	o := &p.out[stream]
	for !o.room(body.size()) {
		if _, err := p.wait(ctx, nil); err != nil {
			p.mu.Unlock()
			memory.release()
			return err
		}
	}
	if stream == talks && uint64(t) != talkTag(p.life) {
		p.mu.Unlock()
		memory.release()
		return dist.ErrSessionClosed
	}
	r := o.push(t, body, raw, memory)
	memory.hold()
	defer memory.release()
	p.node.stats.messages.Add(1)
	p.node.written.Add(p.node.wireBytes(r.size))
	send := p.settled && r.seq >= o.taken // in a second life it may have it already
	p.mu.Unlock()
	if send {
		p.transmit(stream, r, 0)
	}
	return nil
}

// transmit sends a message from byte offset on, by the direct way where it is large and there is
// one.
func (p *peer) transmit(stream int, r record, from int) {
	if !p.way.take(stream, r, from) {
		p.relay(stream, r, from)
	}
}

// relay sends a message over NATS, piece by piece.
func (p *peer) relay(stream int, r record, from int) {
	for f := range frames(stream, r, from, p.node.chunk) {
		p.publish(f)
	}
}

// frames cuts a message into pieces, each of one part of its body. The frame is the same one each
// time.
func frames(stream int, r record, from, chunk int) iter.Seq[*frame] {
	return func(yield func(*frame) bool) {
		f := frame{kind: kindData, stream: uint8(stream), seq: r.seq, t: r.t, total: uint32(r.size), raw: uint32(r.raw)}
		if r.raw != r.size {
			f.flags = flagPacked
		}
		for {
			f.offset, f.piece = uint32(from), r.body.at(from, chunk)
			if from += len(f.piece); !yield(&f) || from >= r.size {
				return
			}
		}
	}
}

// publish sends a frame over NATS to the life that has shaken hands. Where there are seals and no
// such life, nobody would believe it.
func (p *peer) publish(f *frame) {
	keys := p.present()
	if p.node.signet != nil && keys == nil {
		return
	}
	p.stamp(f)
	p.node.publish(f, keys)
}

// present returns the keys of the peer's present life.
func (p *peer) present() *seals {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys
}

// publishTo sends a frame over NATS to a life that need not have shaken hands.
func (p *peer) publishTo(life uint64, f *frame) {
	p.stamp(f)
	p.node.publish(f, p.keysTo(life))
}

// stamp fills in what all frames to this peer have.
func (p *peer) stamp(f *frame) {
	n := p.node
	f.from, f.to, f.run, f.life = uint32(n.opt.Self), uint32(p.id), n.run, n.life
	if f.kind != kindData {
		f.total, f.raw = uint32(len(f.piece)), uint32(len(f.piece))
	}
	p.mu.Lock()
	in := &p.in[exchanges]
	f.got, f.stable = in.next, in.stable
	in.said = max(in.said, in.next)
	p.mu.Unlock()
}

// take waits for the next message of a stream; of a talk, as long as the peer is in the life that
// is named.
func (p *peer) take(ctx context.Context, stream int, life uint64) (*parcel, error) {
	var timer *time.Timer
	var alarm <-chan time.Time
	every := p.node.opt.firstAsk
	p.mu.Lock()
	defer p.mu.Unlock()
	in := &p.in[stream]
	seen := in.pieces
	for {
		if stream == talks && p.life != life {
			return nil, dist.ErrSessionClosed
		}
		if m, ok := in.take(p.node.opt.Durable && stream != talks); ok {
			p.acknowledge(stream)
			return m, nil
		}
		if timer == nil {
			timer = time.NewTimer(every)
			defer timer.Stop()
			alarm = timer.C
		}
		timeout, err := p.wait(ctx, alarm)
		if err != nil {
			return nil, err
		}
		if timeout {
			if in.pieces == seen {
				p.ask(stream, in.next, in.lacks())
				every = min(2*every, askTimes*p.node.opt.firstAsk)
			}
			seen = in.pieces
			timer.Reset(every)
		}
	}
}

// ask wants a message again. The caller holds the lock.
func (p *peer) ask(stream int, seq uint64, offset int) {
	if !p.settled {
		return
	}
	f := &frame{kind: kindWant, stream: uint8(stream), seq: seq, offset: uint32(offset)}
	if stream == talks {
		f.t = talkTag(p.life)
	}
	p.node.stats.asked.Add(1)
	p.mu.Unlock()
	p.publish(f)
	p.mu.Lock()
}

// acknowledge tells the sender at once where it may be short of room. Else the next message that
// goes back says it, or the clock. The caller holds the lock.
func (p *peer) acknowledge(stream int) {
	in := &p.in[stream]
	if in.next-in.said < window/4 {
		return
	}
	in.said = in.next
	p.mu.Unlock()
	p.sendAck()
	p.mu.Lock()
}

// sendAck says how far this node is with the peer's messages.
func (p *peer) sendAck() {
	p.mu.Lock()
	var a ack
	for s := range p.in {
		in := &p.in[s]
		a.next[s], a.stable[s], in.said = in.next, in.stable, in.next
	}
	a.full = p.out[exchanges].bytes > p.node.opt.LogBytes
	tag := talkTag(p.life)
	p.nextBeat = time.Now().Add(beat)
	p.mu.Unlock()
	p.publish(&frame{kind: kindAck, t: tag, piece: a.append(nil)})
}

// leave says the last that the peer has not heard.
func (p *peer) leave() {
	p.mu.Lock()
	say := false
	for s := range p.in {
		say = say || p.settled && p.in[s].next > p.in[s].said
	}
	p.mu.Unlock()
	if say {
		p.sendAck()
	}
}

// clock does what is due.
func (p *peer) clock(now time.Time) {
	p.mu.Lock()
	var greet, say bool
	life := p.life
	if !p.settled && now.After(p.nextHello) {
		greet = true
		p.nextHello = now.Add(p.helloEvery)
		p.helloEvery = min(2*p.helloEvery, lastHello)
	}
	if p.settled {
		say = now.After(p.nextBeat)
		for s := range p.in {
			say = say || p.in[s].next > p.in[s].said
		}
	}
	p.mu.Unlock()
	if greet {
		p.greet(life, false)
	}
	if say {
		p.sendAck()
	}
}

// greet says hello to the life that it names, 0 where none is known.
func (p *peer) greet(echo uint64, settled bool) {
	h := hello{Life: p.node.life, Echo: echo, Settled: settled, Durable: p.node.opt.Durable,
		Identity: p.node.opt.Identity, Door: p.node.sign(), Cert: p.node.signet.cert()}
	p.mu.Lock()
	for s := range p.in {
		h.Next[s] = p.in[s].next
	}
	p.mu.Unlock()
	text, err := json.Marshal(h)
	if err != nil {
		panic("nats: a handshake that JSON cannot hold: " + err.Error()) // plain fields: cannot happen
	}
	p.publishTo(echo, &frame{kind: kindHello, piece: text})
}

// greeted answers a handshake. Only who repeats our life is believed to live: what was recorded
// once does not know it. Where there are seals it also must have proved who it is.
func (p *peer) greeted(h hello, proven bool) {
	if field, ours, theirs, differ := difference(p.node.opt.Identity, h.Identity); differ && proven {
		p.refuse(h.Life, field, ours, theirs)
		return
	}
	p.mu.Lock()
	if p.former[h.Life] {
		p.mu.Unlock()
		return
	}
	if h.Echo != p.node.life || !proven {
		known := p.settled && p.life == h.Life
		p.mu.Unlock()
		p.greet(h.Life, known)
		return
	}
	p.way.learn(h.Door)
	lost, lacks := p.settle(h)
	var again [streams][]record
	if !lacks {
		again = p.unheard()
	}
	p.mu.Unlock()
	if lacks {
		p.refuse(h.Life, "place", fmt.Sprintf("not before message %d, as its checkpoint was", lost[0]),
			fmt.Sprintf("before message %d: it must go on from its newest checkpoint", lost[1]))
		return
	}
	if !h.Settled {
		p.greet(h.Life, true)
	}
	for s, records := range again {
		for _, r := range records {
			p.transmit(s, r, 0)
			r.lent.release()
		}
	}
}

// settle believes in a peer's life, unless it needs a message that is kept no more: then it tells
// the first one that is, and the one it wants. The caller holds the lock.
func (p *peer) settle(h hello) (lost [2]uint64, lacks bool) {
	p.heard = time.Now()
	if p.settled && p.life == h.Life {
		return lost, false
	}
	for s := range kept {
		if first := p.out[s].first(); h.Next[s] < first {
			return [2]uint64{first, h.Next[s]}, true
		}
	}
	back := p.life != 0
	p.bury()
	if p.node.signet != nil {
		p.keys = p.node.signet.between(p.secret, p.id, h.Life)
	}
	p.life, p.settled, p.durable = h.Life, true, h.Durable
	p.helloEvery = firstHello
	for s := range kept {
		p.out[s].taken = h.Next[s]
		p.in[s].forget()
	}
	p.beginTalk()
	p.wake()
	say := p.node.log.Debug
	if back {
		say = p.node.log.Info
	}
	say("agent is there", zap.Int("peer", p.id), zap.Bool("again", back))
	return lost, false
}

// bury notes that the peer's life is over. The caller holds the lock.
func (p *peer) bury() {
	const most = 1000 // restarts that anybody could replay
	if p.life == 0 {
		return
	}
	if p.former == nil || len(p.former) >= most {
		p.former = make(map[uint64]bool)
	}
	p.former[p.life] = true
}

// unheard lists what the peer has not taken, and holds it. The caller holds the lock.
func (p *peer) unheard() (again [streams][]record) {
	for s := range p.out {
		for _, r := range p.out[s].log {
			if r.seq >= p.out[s].taken {
				r.lent.hold()
				again[s] = append(again[s], r)
			}
		}
	}
	return again
}

// refuse tells a stranger what is wrong.
func (p *peer) refuse(life uint64, field, ours, theirs string) {
	p.mu.Lock()
	first := !p.refused
	p.refused = true
	p.mu.Unlock()
	if first {
		p.node.stats.refused.Add(1)
		p.node.log.Warn("refused a stranger", zap.Int("says_it_is", p.id), zap.String("field", field),
			zap.String("theirs", theirs), zap.String("ours", ours))
	}
	text, err := json.Marshal(refusal{Field: field, Ours: ours, Theirs: theirs, Settled: p.node.ConnectedPeers(), Life: life,
		Cert: p.node.signet.cert()})
	if err != nil {
		return
	}
	p.publishTo(life, &frame{kind: kindRefuse, piece: text})
}
