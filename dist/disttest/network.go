package disttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fspda/dist"
	"fspda/internal/rng"
)

// Board is a network for talks between the goroutines of one process, whose agents have lives that
// begin and end, and whose links can be cut and delay what they carry. It uses the clock; in a
// bubble of testing/synctest that costs nothing.
type Network struct {
	n     int
	delay time.Duration // most of a record, uniform from 0

	mu        sync.Mutex
	nodes     []*Node // by agent; nil: it is not there
	cuts      map[direction]bool
	lastHeard map[direction]time.Time // when one last heard the other, where it does no more
	sessions  map[[2]*Node]*pair
	draw      rng.Stream
	changed   chan struct{}
}

// Life is one life of an agent's process.
type Node struct {
	net  *Network
	id   int
	dead chan struct{}
}

// pair is the talk between two lives: a queue for each direction, by the receiver.
type pair struct{ queues map[*Node]*queue }

type queue struct {
	waiting []delivery
	news    chan struct{} // one who says something leaves a token
}

type delivery struct {
	record []byte
	at     time.Time
}

// NewBoard makes a network of n agents, none of which is there yet.
func NewNetwork(n int, seed uint64, delay time.Duration) *Network {
	return &Network{n: n, delay: delay, nodes: make([]*Node, n), cuts: map[direction]bool{}, lastHeard: map[direction]time.Time{},
		sessions: map[[2]*Node]*pair{},
		draw:     rng.New(seed, "board"), changed: make(chan struct{})}
}

// Begin begins a life of agent i, which has none.
func (b *Network) Start(i int) *Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[i] != nil {
		panic(fmt.Sprintf("disttest: agent %d lives already", i))
	}
	l := &Node{net: b, id: i, dead: make(chan struct{})}
	b.nodes[i] = l
	for k := range b.n {
		b.lastHeard[direction{k, i}] = time.Now()
	}
	b.wake()
	return l
}

// End ends a life, as a kill does: what was under way is lost.
func (l *Node) Kill() {
	b := l.net
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[l.id] = nil
	for k := range b.n {
		if !b.cuts[direction{l.id, k}] {
			b.lastHeard[direction{l.id, k}] = time.Now()
		}
	}
	for lives := range b.sessions {
		if lives[0] == l || lives[1] == l {
			delete(b.sessions, lives)
		}
	}
	close(l.dead)
	b.wake()
}

// Cut cuts the link between i and j, or mends it. What is said meanwhile arrives later.
func (b *Network) Cut(i, j int, cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range [2]direction{{i, j}, {j, i}} {
		if cut && !b.cuts[l] && b.nodes[l.from] != nil {
			b.lastHeard[l] = time.Now()
		}
		b.cuts[l] = cut
	}
	b.wake()
}

// wake tells all who wait. The caller holds the lock.
func (b *Network) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Silent implements [dist.Switchboard].
func (l *Node) SilentFor(with int) time.Duration {
	b := l.net
	b.mu.Lock()
	defer b.mu.Unlock()
	at := direction{with, l.id}
	if b.nodes[with] != nil && !b.cuts[at] {
		return 0
	}
	return time.Since(b.lastHeard[at])
}

// Talk implements [dist.Switchboard].
func (l *Node) OpenSession(ctx context.Context, with int) (dist.Session, error) {
	b := l.net
	for {
		b.mu.Lock()
		other, changed := b.nodes[with], b.changed
		if b.nodes[l.id] != l {
			b.mu.Unlock()
			return nil, dist.ErrSessionClosed
		}
		if other != nil && !b.cuts[direction{with, l.id}] {
			p := b.pair(l, other)
			b.mu.Unlock()
			return &session{self: l, other: other, pair: p}, nil
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (b *Network) pair(l, other *Node) *pair {
	key := [2]*Node{l, other}
	if other.id < l.id {
		key = [2]*Node{other, l}
	}
	if b.sessions[key] == nil {
		b.sessions[key] = &pair{map[*Node]*queue{l: {news: make(chan struct{}, 1)},
			other: {news: make(chan struct{}, 1)}}}
	}
	return b.sessions[key]
}

// talk is one end of a pair.
type session struct {
	self, other *Node
	pair        *pair
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
	q.waiting = append(q.waiting, delivery{record, at})
	select {
	case q.news <- struct{}{}:
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
		if len(q.waiting) > 0 && !b.cuts[direction{t.other.id, t.self.id}] {
			wait := time.Until(q.waiting[0].at)
			if wait <= 0 {
				r := q.waiting[0].record
				q.waiting = q.waiting[1:]
				b.mu.Unlock()
				return r, nil
			}
			due = time.After(wait)
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-q.news:
		case <-due:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
