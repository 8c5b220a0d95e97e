package disttest

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"fspda/dist"
	"fspda/internal/rng"
)

// Faults are what a Sim does to messages. The zero Faults do nothing.
type Faults struct {
	Cut      float64 // chance that an edge is idle at an iteration, both ways; 0 to 1
	MaxDelay int     // a message is held back for 0 to MaxDelay deliveries, uniform
	Reorder  bool    // a message may overtake earlier ones to the same agent from other agents
}

// Sim is a Transport between the goroutines of one process that delivers late and cuts edges, in a
// way set by its seed alone.
//
// A message becomes visible to its receiver after a number of deliveries that is drawn for it. A
// receiver that finds its message still held back counts as a delivery, too, and lets others run
// first; so nothing is held back for ever. The messages of one line keep their order always, those
// to one agent unless Reorder is set.
type Sim struct {
	n      int
	seed   uint64
	faults Faults

	mu         sync.Mutex
	lines      map[direction]*stream
	deliveries int
	latest     []int           // by receiver: when its last message becomes visible
	news       []chan struct{} // by receiver: closed at the next message to it; nil when nobody waits
}

type direction struct{ from, to int }

// queue holds the messages of a line that were sent and not delivered.
type stream struct{ waiting []flight }

// flight is a message and the number of deliveries from which on it is visible.
type flight struct {
	m       dist.Message
	visible int
}

var _ dist.Transport = (*Sim)(nil)

// NewSim returns the network of agents 0..n-1. It panics when a fault is out of its range.
func NewSim(n int, seed uint64, f Faults) *Sim {
	if n < 1 || !(f.Cut >= 0 && f.Cut <= 1) || f.MaxDelay < 0 {
		panic(fmt.Sprintf("disttest: NewSim(%d agents, %+v): it takes at least 1 agent, Cut in 0..1, MaxDelay not negative", n, f))
	}
	return &Sim{n: n, seed: seed, faults: f, lines: make(map[direction]*stream), latest: make([]int, n),
		news: make([]chan struct{}, n)}
}

// IsCut says whether the edge between i and j is cut at iteration t. The order of i and j does not
// matter.
func (s *Sim) IsCut(i, j, t int) bool {
	if s.faults.Cut == 0 {
		return false
	}
	draw := rng.New(s.seed, "sim-cut", uint64(t), uint64(min(i, j)), uint64(max(i, j)))
	return draw.Float64() < s.faults.Cut
}

// delay is how many deliveries a message is held back.
func (s *Sim) delay(m dist.Message) int {
	if s.faults.MaxDelay == 0 {
		return 0
	}
	draw := rng.New(s.seed, "sim-delay", uint64(m.T), uint64(m.From), uint64(m.To))
	return draw.IntN(s.faults.MaxDelay + 1)
}

// Deliveries is the number of deliveries so far, attempts included that found their message held
// back.
func (s *Sim) Deliveries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries
}

// Send implements [dist.Transport]. It never waits.
func (s *Sim) Send(_ context.Context, m dist.Message) error {
	s.check(m.From, m.To)
	if s.IsCut(m.From, m.To, m.T) {
		m.Release()
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := flight{m: m, visible: s.deliveries + s.delay(m)}
	if !s.faults.Reorder {
		f.visible = max(f.visible, s.latest[m.To])
		s.latest[m.To] = f.visible
	}
	q := s.line(m.From, m.To)
	q.waiting = append(q.waiting, f)
	if news := s.news[m.To]; news != nil {
		close(news)
		s.news[m.To] = nil
	}
	return nil
}

// Recv implements [dist.Transport].
func (s *Sim) Recv(ctx context.Context, self, from, t int) (dist.Message, error) {
	s.check(from, self)
	if s.IsCut(from, self, t) {
		return dist.Message{}, dist.ErrIdle
	}
	for {
		m, news, ok := s.take(from, self)
		if ok {
			if err := dist.CheckIteration(m, t); err != nil {
				return dist.Message{}, err
			}
			return m, nil
		}
		select {
		case <-news:
			runtime.Gosched() // held back: others first
		case <-ctx.Done():
			return dist.Message{}, fmt.Errorf("disttest: agent %d awaiting iteration %d from agent %d: %w", self, t,
				from, context.Cause(ctx))
		}
	}
}

// take removes the first message of a line if it is visible. If it is not, news is closed when it
// is worth to look again.
func (s *Sim) take(from, to int) (m dist.Message, news <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.line(from, to)
	if len(q.waiting) == 0 {
		if s.news[to] == nil {
			s.news[to] = make(chan struct{})
		}
		return m, s.news[to], false
	}
	s.deliveries++
	first := q.waiting[0]
	if first.visible >= s.deliveries {
		return m, closed, false
	}
	q.waiting[0] = flight{}
	q.waiting = q.waiting[1:]
	return first.m, nil, true
}

// closed stands for "look again at once".
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// line returns the queue from one agent to another. The caller holds the lock.
func (s *Sim) line(from, to int) *stream {
	q := s.lines[direction{from, to}]
	if q == nil {
		q = new(stream)
		s.lines[direction{from, to}] = q
	}
	return q
}

func (s *Sim) check(from, to int) {
	if from == to || min(from, to) < 0 || max(from, to) >= s.n {
		panic(fmt.Sprintf("disttest: no line leads from agent %d to agent %d of %d", from, to, s.n))
	}
}
