package disttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fspda/dist"
	"fspda/internal/rng"
)

// Network opens sessions between the goroutines of one process. Its agents' processes start and
// end, and its links can be cut and delay records. It uses the clock; in a bubble of
// testing/synctest waiting costs no time.
type Network struct {
	n     int
	delay time.Duration // maximal delay of a record, uniform from 0

	mu        sync.Mutex
	nodes     []*Node // by agent; nil: not running
	cuts      map[direction]bool
	lastHeard map[direction]time.Time // when the receiver last heard from a sender that is now silent
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
type sessionQueues struct{ queues map[*Node]*queue }

type queue struct {
	pending []delivery
	pushed  chan struct{} // holds a token if a record was pushed
}

type delivery struct {
	record []byte
	at     time.Time
}

// NewNetwork returns a network of n agents, none of which is running.
func NewNetwork(n int, seed uint64, delay time.Duration) *Network {
	return &Network{n: n, delay: delay, nodes: make([]*Node, n), cuts: map[direction]bool{},
		lastHeard: map[direction]time.Time{},
		sessions:  map[[2]*Node]*sessionQueues{},
		draw:      rng.New(seed, "board"), changed: make(chan struct{})}
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
		b.sessions[key] = &sessionQueues{map[*Node]*queue{n: {pushed: make(chan struct{}, 1)},
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
	at := time.Now()
	if b.delay > 0 {
		at = at.Add(time.Duration(b.draw.Float64() * float64(b.delay)))
	}
	q.pending = append(q.pending, delivery{record, at})
	select {
	case q.pushed <- struct{}{}:
	default:
	}
	return nil
}

func (t *session) closed() bool {
	b := t.self.net
	return b.nodes[t.self.id] != t.self || b.nodes[t.other.id] != t.other
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
