package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/clip"
)

// exchange is an agent's communication: the links of an iteration, the messages sent and received
// over them, and their account.
type exchange struct {
	*core
	checking
	ledger dist.Ledger
	codec  codec
	edges  func(t int) // sets the links of an iteration
	// recv waits for a message of a link.
	recv   func(ctx context.Context, link int) (dist.Message, error)
	reduce divided // how an all-reduce is divided between processes
	posts  []int   // messages posted in this iteration, by link
	travelling
	expect int  // messages that a link brings in an exchange
	total  int  // messages that a link brings in an iteration
	left   bool // a link of this iteration leads to an agent that will leave

	masks     []device.Index // one per link of a broadcast, memory reused
	held      []*mask        // masks of this iteration, shared with the worker's other agents
	own       []*dist.Buffer // buffers that the algorithm acquired in this iteration
	received  []*dist.Buffer
	retained  []*dist.Buffer // buffers received in earlier iterations that the algorithm keeps
	shortened []shortCopy    // copies of own with short values
	host      []float32      // scratch
	sendErr   error          // first error of a send in this run
}

// checkedNet returns the transport if it checks messages as they arrive.
func (x *exchange) checkedNet() (net dist.Checked, ok bool) {
	net, ok = x.run.net.(dist.Checked)
	return net, ok
}

// init sets the fields that do not change over the iterations.
func (x *exchange) init() {
	s, r := x.run.setup, &x.round
	r.Acquire, r.Post, r.Retain, x.flight.t = x.acquire, x.post, x.retain, -1
	if s.WireFormat().Bits() == 32 {
		r.Swap = x.swap // short values: the algorithm must keep the bits of its own vectors
	}
	x.recv = func(ctx context.Context, link int) (dist.Message, error) {
		return x.run.net.Recv(ctx, x.id, x.round.Links[link].Peer, x.awaited)
	}
	if net, ok := x.checkedNet(); ok {
		check := x.checkMessage
		x.recv = func(ctx context.Context, link int) (dist.Message, error) {
			x.checked, x.coming = link, nil
			if x.early {
				return net.PeekChecked(ctx, x.id, x.round.Links[link].Peer, x.awaited, check)
			}
			return net.RecvChecked(ctx, x.id, x.round.Links[link].Peer, x.awaited, check)
		}
	}
	x.codec.message, x.expect, x.total = s.Codec(), s.Traits.MessagesPerLink(), s.Traits.MessagesPerIteration()
	switch {
	case s.AllReduces():
		x.edges = x.allReduceLinks
		x.initDivided()
	case s.Broadcasts():
		x.edges = x.broadcast
	case s.Directed() != nil:
		x.edges = x.push
	default:
		x.edges = x.exchangeOver
	}
	if s.Compressor != nil {
		r.Compress, r.Picks = x.pack, x.picks
	}
	if c, ok := s.Compressor.(dist.Inverter); ok {
		r.Inverse, r.Signs = x.inverse(c), x.signs(c)
	}
	if s.Lattice != nil {
		r.Encode, r.Decode = x.encode, x.decode
	}
}

// connect sets the round's links: this iteration's edges at the agent, each with the mask that both
// ends derive.
func (x *exchange) connect(t int) {
	x.round.Links, x.round.Shared, x.awaited, x.taken = x.round.Links[:0], nil, t, false
	x.edges(t)
}

// push sets the round's links on a directed graph: one for each agent to which or from which an arc
// leads.
func (x *exchange) push(t int) {
	now := x.run.edgesAt(t)
	defer x.run.edges.Put(now)
	x.round.Keep = now.share(x.id)
	for _, a := range now.arcs {
		if a.From != x.id && a.To != x.id {
			continue
		}
		peer := a.From + a.To - x.id
		if n := len(x.round.Links); n == 0 || x.round.Links[n-1].Peer != peer {
			l := x.link(peer, nil, x.run.setup.Dim, 0, 0)
			l.Mute, l.PeerInactive, l.Share = true, true, now.share(peer)
		}
		l := &x.round.Links[len(x.round.Links)-1]
		if a.From == x.id {
			l.Mute = false
		} else {
			l.PeerInactive = false
		}
	}
}

// exchangeOver sets the round's links over the active edges of the graph.
func (x *exchange) exchangeOver(t int) {
	s := x.run.setup
	now := x.run.edgesAt(t)
	defer x.run.edges.Put(now)
	for k, e := range now.events {
		peer, ok := e.Peer(x.id)
		if !ok {
			continue
		}
		w, fixed := now.weights.Event(k), 0.0
		if s.Mixing != nil {
			fixed = s.Mixing.Edge(e.Edge)
		}
		if s.Mask.Dense() || x.codec.message != nil { // a codec sends the coordinates, if it chooses some
			x.link(peer, nil, s.Dim, w, fixed)
		} else {
			mask := x.edgeMask(t, peer)
			x.link(peer, mask, mask.Len(), w, fixed)
		}
		x.round.Links[len(x.round.Links)-1].Initiator = x.initiates(t, e)
	}
	n, all := s.Graph.N, s.Mask.Dense() && s.Config.ClipMessages == 0 && !s.Members.Elastic()
	if all && len(now.events) == n*(n-1)/2 && len(x.round.Links) == n-1 {
		x.round.Shared = x.sharedVector
	}
}

// connectTo makes the edge to a peer the round's only link.
func (x *exchange) connectTo(peer int) *algo.Link {
	s, t := x.run.setup, x.round.T
	x.round.Links, x.awaited = x.round.Links[:0], t
	if s.Mask.Dense() {
		x.link(peer, nil, s.Dim, 0, 0)
	} else {
		mask := x.edgeMask(t, peer)
		x.link(peer, mask, mask.Len(), 0, 0)
	}
	return &x.round.Links[0]
}

// sharedVector is Round.Shared.
func (x *exchange) sharedVector(which int, fill func(dst device.Vector)) device.Vector {
	b := x.worker.cache.Get(x.round.T, which, fill)
	x.received = append(x.received, b)
	return b.V
}

// link appends one link to the round, reusing the memory of an earlier round's.
func (x *exchange) link(peer int, mask device.Index, length int, weight, fixed float64) *algo.Link {
	n := len(x.round.Links)
	if n < cap(x.round.Links) {
		x.round.Links = x.round.Links[:n+1]
	} else {
		x.round.Links = append(x.round.Links, algo.Link{})
	}
	l := &x.round.Links[n]
	l.Peer, l.Mask, l.Len, l.ActiveWeight, l.FixedWeight = peer, mask, length, weight, fixed
	l.Initiator, l.PeerInactive, l.Mute, l.Share = false, false, false, 0
	l.Sent, l.Received, l.Coords, l.Overhead = l.Sent[:0], nil, l.Coords[:0], 0
	x.posts = append(x.posts[:n], 0)
	return l
}

// acquire is Round.Acquire.
func (x *exchange) acquire(n int) device.Vector {
	b := x.worker.pool.GetFor(x.round.T, n)
	x.own = append(x.own, b)
	return b.V
}

// swap is Round.Swap: it exchanges the vector for the vector of a buffer to post.
func (x *exchange) swap(v device.Vector) device.Vector {
	x.acquire(v.Len())
	b := x.own[len(x.own)-1]
	b.V, v = v, b.V
	return v
}

// retain is Round.Retain. The pool gets old: it is the vector of a buffer that was retained before,
// or one without a buffer.
func (x *exchange) retain(v, old device.Vector) device.Vector {
	of := func(v device.Vector) func(b *dist.Buffer) bool { return func(b *dist.Buffer) bool { return b.V == v } }
	at := slices.IndexFunc(x.received, of(v))
	b := x.received[at]
	x.received = slices.Delete(x.received, at, at+1)
	if k := slices.IndexFunc(x.retained, of(old)); k >= 0 {
		x.retained[k].Release()
		x.retained[k] = b
		return v
	}
	x.worker.pool.Adopt(old)
	x.retained = append(x.retained, b)
	return v
}

// post is Round.Post: it sends the vectors. The receiver in this process reads the same memory.
func (x *exchange) post(link int, values ...device.Vector) {
	l := &x.round.Links[link]
	x.posts[link]++
	m := dist.Message{T: x.round.T, From: x.id, To: l.Peer, Codec: x.codec.message}
	x.shape = x.shape[:0]
	for _, v := range values {
		x.shape = append(x.shape, v.Len())
		at := slices.IndexFunc(x.own, func(b *dist.Buffer) bool { return b.V == v })
		if at < 0 {
			panic(fmt.Sprintf("train: agent %d posts a vector that the round did not give out", x.id))
		}
		b := x.shorten(x.own[at])
		sent, own := x.divide(b, l.Peer, len(l.Sent))
		m.Values, l.Sent = append(m.Values, sent), append(l.Sent, own)
	}
	if x.reduce.now {
		x.reduce.parts.Mark(&m, l.Peer)
	}
	if x.run.setup.Members.Idle(l.Peer, x.id, x.place()) { // it would not receive
		m.Release()
		return
	}
	if m.Arrives = x.clock.Post(m.T, l.Peer, x.messageBits(values)); x.again && x.logged() {
		m.Release()
		return
	}
	if err := x.run.net.Send(x.ctx, m); err != nil && x.sendErr == nil {
		x.sendErr = err
	}
}

// shortCopy is a buffer of the algorithm, and the buffer that every message sends in its place.
type shortCopy struct{ of, sent *dist.Buffer }

// shorten returns the buffer that is sent in place of b: b itself, or a rounded copy in a format of
// short values. Both ends compare the numbers that are sent, and the algorithm keeps its own. See
// [dist.ValueFormat].
func (x *exchange) shorten(b *dist.Buffer) *dist.Buffer {
	wire := x.run.setup.WireFormat()
	if wire.Bits() == 32 {
		return b
	}
	if at := slices.IndexFunc(x.shortened, func(s shortCopy) bool { return s.of == b }); at >= 0 {
		return x.shortened[at].sent
	}
	x.host = x.read(x.host, b.V)
	wire.Round(x.host)
	sent := x.worker.pool.Get(b.V.Len())
	x.own = append(x.own, sent)
	x.shortened = append(x.shortened, shortCopy{b, sent})
	x.dev.Write(sent.V, x.host)
	return sent
}

// receive waits for the messages of a link's other end.
func (x *exchange) receive(link int) error {
	if x.sendErr != nil {
		return x.sendErr
	}
	l := &x.round.Links[link]
	if l.PeerInactive || len(l.Sent) == 0 && !l.Mute || x.taken {
		return nil
	}
	if x.idle(l.Peer) {
		x.giveUp(l)
		return nil
	}
	received, coords := l.Received, l.Coords
	ctx, over := x.Watch(x.ctx, l.Peer)
	defer over()
	for range x.expect {
		m, err := x.recv(ctx, link)
		if errors.Is(err, dist.ErrIdle) {
			return nil
		}
		if err != nil && x.Gone(l.Peer) {
			break
		}
		if err != nil {
			return x.failure(err)
		}
		if x.reduce.now && x.Joint() {
			if x.reduce.got[link]++; givesUp(m) {
				m.Release()
				x.reduce.failed = true
				return nil
			}
		}
		x.take(link, m)
	}
	if !x.Uses(x.ctx, l.Peer, x.place()) {
		l.Received, l.Coords = received, coords
		x.giveUp(l)
	}
	return nil
}

// idle reports whether the present exchange with a peer fails.
func (x *exchange) idle(peer int) bool { return x.run.setup.Members.Idle(x.id, peer, x.place()) }

// giveUp leaves the other end of a link out: it is absent, or will leave. An edge that both ends use
// is idle then. Where one end sends, it sends nothing.
func (x *exchange) giveUp(l *algo.Link) {
	switch s := x.run.setup; {
	case s.Traits.Edges.Collective:
		x.left = true
	case s.Broadcasts() || s.Directed() != nil:
		l.PeerInactive = true
	}
}

// settle ends a collective exchange, once everything was received: it takes the links to agents that
// leave out of it, so that its sums are over the agents whose messages count.
func (x *exchange) settle(s *algo.State) error {
	if x.reduce.now && x.Joint() {
		if err := x.reduceJointly(s); err != nil || x.reduce.now {
			return err
		}
	}
	if err := x.confirm(); err != nil || !x.left {
		return err
	}
	x.left = false
	links, kept := x.round.Links, 0
	for i := range links {
		if !x.idle(links[i].Peer) {
			links[i], links[kept] = links[kept], links[i] // a later iteration uses the memory of both
			x.posts[i], x.posts[kept] = x.posts[kept], x.posts[i]
			kept++
		}
	}
	x.round.Links, x.posts = links[:kept], x.posts[:kept]
	return nil
}

// confirm tells the others that this agent has all messages of a collective exchange, and waits
// until all have said so, or have left. An agent that leaves meanwhile counts for all or for none.
func (x *exchange) confirm() error {
	links, t := x.round.Links, x.round.T
	if !x.Joint() || len(links) == 0 {
		return nil
	}
	x.Confirms(x.place())
	if err := x.tell(1); err != nil {
		return err
	}
	for i := range links {
		if x.idle(links[i].Peer) {
			continue
		}
		ctx, over := x.Watch(x.ctx, links[i].Peer)
		m, err := x.run.net.Recv(ctx, x.id, links[i].Peer, t)
		over()
		if err == nil {
			m.Release()
		} else if !x.Gone(links[i].Peer) {
			return x.failure(err)
		}
	}
	x.Commits(x.ctx, x.place())
	for i := range links {
		if l := &links[i]; x.idle(l.Peer) {
			l.Received, l.Coords = nil, l.Coords[:0]
			x.giveUp(l)
		}
	}
	return nil
}

// selfWeight is the weight of the agent itself in the mixing matrix of the members from iteration t
// on: absent neighbours leave it theirs.
func (x *exchange) selfWeight(t int) float64 {
	s := x.run.setup
	w := s.Mixing.Self(x.id)
	for k, peer := range s.Graph.Neighbours(x.id) {
		if !s.Members.Present(peer, t) {
			w += s.Mixing.Edge(s.Graph.Incident(x.id)[k])
		}
	}
	return w
}

// weigh sets the weight of the agent itself from iteration t on.
func (x *exchange) weigh(t int) {
	if x.run.setup.Mixing != nil {
		x.round.SelfWeight = x.selfWeight(t)
	}
}

// failure returns why the agent ends after an error of the transport.
func (x *exchange) failure(err error) error {
	if bad, ok := errors.AsType[*dist.BadValueError](err); ok {
		return &DivergedError{Agent: bad.From, T: bad.T, Cause: bad, elsewhere: true}
	}
	return cmp.Or(context.Cause(x.ctx), err)
}

// arrived reports whether receive would return at once, as far as the transport can tell.
func (x *exchange) arrived(link int) bool {
	p, ok := x.run.net.(dist.Poller)
	return ok && p.Arrived(x.id, x.round.Links[link].Peer) >= x.expect
}

// take adds a message to the received vectors of a link.
func (x *exchange) take(link int, m dist.Message) {
	l := &x.round.Links[link]
	x.clock.Receive(m.Arrives)
	for i, b := range m.Values {
		b = x.toDevice(b)
		if k := len(l.Received); k < len(l.Sent) {
			b = clip.Message(x.worker.pool, b, l.Sent[k], x.run.setup.Config.ClipMessages)
		}
		m.Values[i] = b
		x.received = append(x.received, b)
		l.Received = append(l.Received, b.V)
	}
	if x.run.setup.Compressor != nil && l.Mask == nil {
		x.locate(link, m.Values[0])
	}
}

// toDevice returns a received buffer on the agent's device: b, or a copy that replaces it.
func (x *exchange) toDevice(b *dist.Buffer) *dist.Buffer {
	from := b.Device()
	if from == x.dev {
		return b
	}
	own := x.worker.pool.Get(b.V.Len())
	own.Coords = append(own.Coords, b.Coords...)
	if fetch := x.dev.Features().Fetch; fetch == nil || !fetch(own.V, b.V) {
		x.host = slices.Grow(x.host[:0], b.V.Len())[:b.V.Len()]
		from.Read(x.host, b.V)
		x.dev.Write(own.V, x.host)
	}
	b.Release()
	return own
}

// account enters the messages that arrived in this iteration in the ledger. An edge that failed was
// not used.
func (x *exchange) account() {
	s := x.run.setup
	switch {
	case s.Traits.Delay > 0: // counted when they were posted
		return
	case s.InRing():
		x.countAllReduce()
		return
	}
	for i := range x.round.Links {
		l := &x.round.Links[i]
		switch {
		case len(l.Sent) == 0 || l.Received == nil && !l.PeerInactive:
		case x.codec.message != nil || s.Broadcasts():
			x.accountCoded(i)
		default:
			x.countSent(dist.Sent{Values: totalLen(l.Sent) - l.Overhead, Mask: l.Len, Indices: x.id > l.Peer})
			x.ledger.Messages += uint64(x.posts[i] - 1)
			x.ledger.Overhead += 32 * uint64(l.Overhead)
			x.ledger.WireBytes += 4 * uint64(l.Overhead)
		}
	}
}

// accountPosts enters the messages of this iteration in the ledger before they have arrived.
func (x *exchange) accountPosts() {
	if x.run.setup.InRing() {
		x.countAllReduce()
		return
	}
	for i := range x.round.Links {
		x.accountCoded(i)
	}
}

// countSent counts one message of plain values. In one process its wire bytes are the bytes of the
// vectors that change hands.
func (x *exchange) countSent(m dist.Sent) {
	m.ValueBits, m.Dim = x.run.setup.WireFormat().Bits(), x.run.setup.Dim
	x.ledger.Send(m)
	x.ledger.WireBytes += uint64(m.ValueBits/8) * uint64(m.Values)
}

// totalLen is the sum of the lengths of vectors.
func totalLen(vectors []device.Vector) (n int) {
	for _, v := range vectors {
		n += v.Len()
	}
	return n
}

// release returns the iteration's buffers and masks.
func (x *exchange) release() {
	for _, b := range x.own {
		b.Release()
	}
	for _, b := range x.received {
		b.Release()
	}
	x.reduce.release()
	x.own, x.received, x.shortened = x.own[:0], x.received[:0], x.shortened[:0]
	x.worker.masks.release(x.held)
	x.held = x.held[:0]
}
