package disttest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fspda/dist"
	"fspda/internal/rng"
)

// Network opens sessions between the goroutines of one process. Its agents' processes start and
// end, and its links can be cut and delay records. It uses the clock; in a bubble of
// testing/synctest waiting costs no time.
type Network struct {
	n        int
	delay    time.Duration // maximal delay of a record, uniform from 0
	scripted bool          // records wait for Deliver

	mu        sync.Mutex
	nodes     []*Node // The running process of each agent, or nil.
	cuts      map[direction]bool
	lastHeard map[direction]time.Time // The time of the last record of a sender that is now silent.
	sessions  map[[2]*Node]*sessionQueues
	draw      rng.Stream
	changed   chan struct{}
}

// Node is one incarnation of an agent's process.
type Node struct {
	net  *Network
	id   int
	dead chan struct{}
}

// sessionQueues is the session between two nodes: one queue per direction, by receiver.
type sessionQueues struct {
	queues map[*Node]*queue
	closed bool
}

type queue struct {
	held    [][]byte // The records of a scripted network that Deliver has not delivered yet.
	pending []delivery
	pushed  chan struct{} // holds a token if a record was pushed
}

type delivery struct {
	record []byte
	at     time.Time
}

// NewNetwork returns a network of n agents, none of which is running.
func NewNetwork(n int, seed uint64, delay time.Duration) *Network {
	return &Network{n: n,
		delay: delay, nodes: make([]*Node, n), cuts: map[direction]bool{}, lastHeard: map[direction]time.Time{},
		sessions: map[[2]*Node]*sessionQueues{}, draw: rng.New(seed, "board"), changed: make(chan struct{})}
}

// NewScriptedNetwork returns a network in which records wait until Deliver is called.
func NewScriptedNetwork(n int) *Network {
	b := NewNetwork(n, 0, 0)
	b.scripted = true
	return b
}

// Start starts a process of agent i, which must not be running.
func (b *Network) Start(i int) *Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[i] != nil {
		panic(fmt.Sprintf("disttest: agent %d is running already", i))
	}
	n := &Node{net: b, id: i, dead: make(chan struct{})}
	b.nodes[i] = n
	for k := range b.n {
		b.lastHeard[direction{k, i}] = time.Now()
	}
	b.notify()
	return n
}

// Kill ends a process. Records in flight to and from it are lost.
func (n *Node) Kill() {
	b := n.net
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[n.id] = nil
	for k := range b.n {
		if !b.cuts[direction{n.id, k}] {
			b.lastHeard[direction{n.id, k}] = time.Now()
		}
	}
	for nodes := range b.sessions {
		if nodes[0] == n || nodes[1] == n {
			delete(b.sessions, nodes)
		}
	}
	close(n.dead)
	b.notify()
}

// Cut cuts or restores the link between i and j. Records sent meanwhile arrive when it is restored.
func (b *Network) Cut(i, j int, cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range [2]direction{{i, j}, {j, i}} {
		if cut && !b.cuts[n] && b.nodes[n.from] != nil {
			b.lastHeard[n] = time.Now()
		}
		b.cuts[n] = cut
	}
	b.notify()
}

// Held returns the records that wait for Deliver from one agent to another in a scripted network.
// Records of a cut link cannot be delivered and are not returned.
func (b *Network) Held(from, to int) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queue(from, to); q != nil {
		return slices.Clone(q.held)
	}
	return nil
}

// queue returns the queue of the open session between two agents, nil without one or if the link is
// cut. The caller holds the lock.
func (b *Network) queue(from, to int) *queue {
	for _, s := range b.sessions {
		q := s.queues[b.nodes[to]]
		if from != to && q != nil && s.queues[b.nodes[from]] != nil && !b.cuts[direction{from, to}] {
			return q
		}
	}
	return nil
}

// Deliver delivers record k of [Network.Held]; k > 0 reorders. With keep, the record stays, so that
// it can be duplicated. A [dist.Session] allows neither.
func (b *Network) Deliver(from, to, k int, keep bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(from, to)
	q.push(delivery{q.held[k], time.Now()})
	if !keep {
		q.held = slices.Delete(q.held, k, k+1)
	}
}

// Disconnect closes the session between i and j, as if the network had lost it together with the
// records in flight.
func (b *Network) Disconnect(i, j int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for nodes, s := range b.sessions {
		if nodes[0].id == min(i, j) && nodes[1].id == max(i, j) {
			s.closed = true
			delete(b.sessions, nodes)
		}
	}
	b.notify()
}

// notify wakes all waiting goroutines. The caller holds the lock.
func (b *Network) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// SilentFor implements [dist.SessionOpener].
func (n *Node) SilentFor(with int) time.Duration {
	b := n.net
	b.mu.Lock()
	defer b.mu.Unlock()
	at := direction{with, n.id}
	if b.nodes[with] != nil && !b.cuts[at] {
		return 0
	}
	return time.Since(b.lastHeard[at])
}

// OpenSession implements [dist.SessionOpener].
func (n *Node) OpenSession(ctx context.Context, with int) (dist.Session, error) {
	b := n.net
	for {
		b.mu.Lock()
		other, changed := b.nodes[with], b.changed
		if b.nodes[n.id] != n {
			b.mu.Unlock()
			return nil, dist.ErrSessionClosed
		}
		if other != nil && !b.cuts[direction{with, n.id}] {
			p := b.sessionBetween(n, other)
			b.mu.Unlock()
			return &session{self: n, other: other, pair: p}, nil
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (b *Network) sessionBetween(n, other *Node) *sessionQueues {
	key := [2]*Node{n, other}
	if other.id < n.id {
		key = [2]*Node{other, n}
	}
	if b.sessions[key] == nil {
		b.sessions[key] = &sessionQueues{queues: map[*Node]*queue{n: {pushed: make(chan struct{}, 1)},
			other: {pushed: make(chan struct{}, 1)}}}
	}
	return b.sessions[key]
}

// session is one end of a session.
type session struct {
	self, other *Node
	pair        *sessionQueues
}

func (t *session) Send(_ context.Context, record []byte) error {
	b := t.self.net
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.closed() {
		return dist.ErrSessionClosed
	}
	q := t.pair.queues[t.other]
	if b.scripted {
		q.held = append(q.held, record)
		return nil
	}
	at := time.Now()
	if b.delay > 0 {
		at = at.Add(time.Duration(b.draw.Float64() * float64(b.delay)))
	}
	q.push(delivery{record, at})
	return nil
}

func (q *queue) push(d delivery) {
	q.pending = append(q.pending, d)
	select {
	case q.pushed <- struct{}{}:
	default:
	}
}

func (t *session) closed() bool {
	b := t.self.net
	return t.pair.closed || b.nodes[t.self.id] != t.self || b.nodes[t.other.id] != t.other
}

func (t *session) Recv(ctx context.Context) ([]byte, error) {
	b := t.self.net
	for {
		b.mu.Lock()
		if t.closed() {
			b.mu.Unlock()
			return nil, dist.ErrSessionClosed
		}
		q, changed := t.pair.queues[t.self], b.changed
		var due <-chan time.Time
		if len(q.pending) > 0 && !b.cuts[direction{t.other.id, t.self.id}] {
			wait := time.Until(q.pending[0].at)
			if wait <= 0 {
				r := q.pending[0].record
				q.pending = q.pending[1:]
				b.mu.Unlock()
				return r, nil
			}
			due = time.After(wait)
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-q.pushed:
		case <-due:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
