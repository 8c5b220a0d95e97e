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
type Board struct {
	n     int
	delay time.Duration // most of a record, uniform from 0

	mu      sync.Mutex
	lives   []*Life // by agent; nil: it is not there
	cuts    map[line]bool
	heard   map[line]time.Time // when one last heard the other, where it does no more
	talks   map[[2]*Life]*pair
	draw    rng.Stream
	changed chan struct{}
}

// Life is one life of an agent's process.
type Life struct {
	board *Board
	id    int
	over  chan struct{}
}

// pair is the talk between two lives: a queue for each direction, by the receiver.
type pair struct{ queues map[*Life]*records }

type records struct {
	waiting []delivery
	news    chan struct{} // one who says something leaves a token
}

type delivery struct {
	record []byte
	at     time.Time
}

// NewBoard makes a network of n agents, none of which is there yet.
func NewBoard(n int, seed uint64, delay time.Duration) *Board {
	return &Board{n: n, delay: delay, lives: make([]*Life, n), cuts: map[line]bool{}, heard: map[line]time.Time{},
		talks: map[[2]*Life]*pair{},
		draw:  rng.New(seed, "board"), changed: make(chan struct{})}
}

// Begin begins a life of agent i, which has none.
func (b *Board) Begin(i int) *Life {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lives[i] != nil {
		panic(fmt.Sprintf("disttest: agent %d lives already", i))
	}
	l := &Life{board: b, id: i, over: make(chan struct{})}
	b.lives[i] = l
	for k := range b.n {
		b.heard[line{k, i}] = time.Now()
	}
	b.wake()
	return l
}

// End ends a life, as a kill does: what was under way is lost.
func (l *Life) End() {
	b := l.board
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lives[l.id] = nil
	for k := range b.n {
		if !b.cuts[line{l.id, k}] {
			b.heard[line{l.id, k}] = time.Now()
		}
	}
	for lives := range b.talks {
		if lives[0] == l || lives[1] == l {
			delete(b.talks, lives)
		}
	}
	close(l.over)
	b.wake()
}

// Cut cuts the link between i and j, or mends it. What is said meanwhile arrives later.
func (b *Board) Cut(i, j int, cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range [2]line{{i, j}, {j, i}} {
		if cut && !b.cuts[l] && b.lives[l.from] != nil {
			b.heard[l] = time.Now()
		}
		b.cuts[l] = cut
	}
	b.wake()
}

// wake tells all who wait. The caller holds the lock.
func (b *Board) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Silent implements [dist.Switchboard].
func (l *Life) Silent(with int) time.Duration {
	b := l.board
	b.mu.Lock()
	defer b.mu.Unlock()
	at := line{with, l.id}
	if b.lives[with] != nil && !b.cuts[at] {
		return 0
	}
	return time.Since(b.heard[at])
}

// Talk implements [dist.Switchboard].
func (l *Life) Talk(ctx context.Context, with int) (dist.Talk, error) {
	b := l.board
	for {
		b.mu.Lock()
		other, changed := b.lives[with], b.changed
		if b.lives[l.id] != l {
			b.mu.Unlock()
			return nil, dist.ErrTalkOver
		}
		if other != nil && !b.cuts[line{with, l.id}] {
			p := b.pair(l, other)
			b.mu.Unlock()
			return &talk{self: l, other: other, pair: p}, nil
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (b *Board) pair(l, other *Life) *pair {
	key := [2]*Life{l, other}
	if other.id < l.id {
		key = [2]*Life{other, l}
	}
	if b.talks[key] == nil {
		b.talks[key] = &pair{map[*Life]*records{l: {news: make(chan struct{}, 1)},
			other: {news: make(chan struct{}, 1)}}}
	}
	return b.talks[key]
}

// talk is one end of a pair.
type talk struct {
	self, other *Life
	pair        *pair
}

func (t *talk) Say(_ context.Context, record []byte) error {
	b := t.self.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.over() {
		return dist.ErrTalkOver
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

func (t *talk) over() bool {
	b := t.self.board
	return b.lives[t.self.id] != t.self || b.lives[t.other.id] != t.other
}

func (t *talk) Hear(ctx context.Context) ([]byte, error) {
	b := t.self.board
	for {
		b.mu.Lock()
		if t.over() {
			b.mu.Unlock()
			return nil, dist.ErrTalkOver
		}
		q, changed := t.pair.queues[t.self], b.changed
		var due <-chan time.Time
		if len(q.waiting) > 0 && !b.cuts[line{t.other.id, t.self.id}] {
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
