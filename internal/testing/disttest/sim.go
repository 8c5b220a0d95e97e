package disttest

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"fspda/dist"
	"fspda/internal/rng"
)

// Faults configure the faults of a [Sim]. The zero value injects none.
type Faults struct {
	Cut      float64 // probability that an edge is idle at an iteration, in both directions; 0 to 1
	MaxDelay int     // a message is held back for 0 to MaxDelay deliveries, uniform
	Reorder  bool    // a message may overtake earlier ones to the same agent from other agents
}

// Sim is a Transport between the goroutines of one process that delays messages and cuts edges,
// determined by its seed alone.
//
// A message becomes visible to its receiver after a number of deliveries that is drawn for it. A
// failed attempt to receive a message that is not visible yet counts as a delivery and yields the
// processor, so that every message becomes visible eventually. Messages of one stream never
// overtake each other; messages to one agent do only if Reorder is set.
type Sim struct {
	n      int
	seed   uint64
	faults Faults

	mu            sync.Mutex
	streams       map[direction]*stream
	deliveries    int
	latestVisible []int           // The time at which the last message to each receiver becomes visible.
	arrived       []chan struct{} // Closed at the next message to each receiver; nil if nobody waits.
}

type direction struct{ from, to int }

// stream holds the messages from one agent to another that were sent and not delivered.
type stream struct{ pending []inFlight }

// inFlight is a message and the number of deliveries after which it is visible.
type inFlight struct {
	m       dist.Message
	visible int
}

var _ dist.Transport = (*Sim)(nil)

// NewSim returns the network of agents 0..n-1. It panics if a fault is out of range.
func NewSim(n int, seed uint64, f Faults) *Sim {
	if n < 1 || !(f.Cut >= 0 && f.Cut <= 1) || f.MaxDelay < 0 {
		panic(fmt.Sprintf("disttest: NewSim(%d agents, %+v): it takes at least 1 agent, Cut in 0..1, MaxDelay not "+
			"negative", n, f))
	}
	return &Sim{n: n, seed: seed, faults: f, streams: make(map[direction]*stream), latestVisible: make([]int, n),
		arrived: make([]chan struct{}, n)}
}

// IsCut reports whether the edge between i and j is cut at iteration t. It is symmetric in i and j.
func (s *Sim) IsCut(i, j, t int) bool {
	if s.faults.Cut == 0 {
		return false
	}
	draw := rng.New(s.seed, "sim-cut", uint64(t), uint64(min(i, j)), uint64(max(i, j)))
	return draw.Float64() < s.faults.Cut
}

// delay returns the number of deliveries for which a message is held back.
func (s *Sim) delay(m dist.Message) int {
	if s.faults.MaxDelay == 0 {
		return 0
	}
	draw := rng.New(s.seed, "sim-delay", uint64(m.T), uint64(m.From), uint64(m.To))
	return draw.IntN(s.faults.MaxDelay + 1)
}

// Deliveries returns the number of deliveries so far, including attempts to receive a message that
// is not visible yet.
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
	f := inFlight{m: m, visible: s.deliveries + s.delay(m)}
	if !s.faults.Reorder {
		f.visible = max(f.visible, s.latestVisible[m.To])
		s.latestVisible[m.To] = f.visible
	}
	q := s.stream(m.From, m.To)
	q.pending = append(q.pending, f)
	if arrived := s.arrived[m.To]; arrived != nil {
		close(arrived)
		s.arrived[m.To] = nil
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
		m, arrived, ok := s.take(from, self)
		if ok {
			if err := dist.CheckIteration(m, t); err != nil {
				return dist.Message{}, err
			}
			return m, nil
		}
		select {
		case <-arrived:
			runtime.Gosched() // not visible yet: let others run
		case <-ctx.Done():
			return dist.Message{}, fmt.Errorf("disttest: agent %d awaiting iteration %d from agent %d: %w", self, t,
				from, context.Cause(ctx))
		}
	}
}

// take removes the first message of a stream if it is visible. Otherwise news is closed when
// another attempt may succeed.
func (s *Sim) take(from, to int) (m dist.Message, arrived <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.stream(from, to)
	if len(q.pending) == 0 {
		if s.arrived[to] == nil {
			s.arrived[to] = make(chan struct{})
		}
		return m, s.arrived[to], false
	}
	s.deliveries++
	first := q.pending[0]
	if first.visible >= s.deliveries {
		return m, closedChan, false
	}
	q.pending[0] = inFlight{}
	q.pending = q.pending[1:]
	return first.m, nil, true
}

// closedChan means "retry at once".
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// stream returns the queue from one agent to another. The caller holds the lock.
func (s *Sim) stream(from, to int) *stream {
	q := s.streams[direction{from, to}]
	if q == nil {
		q = new(stream)
		s.streams[direction{from, to}] = q
	}
	return q
}

func (s *Sim) check(from, to int) {
	if from == to || min(from, to) < 0 || max(from, to) >= s.n {
		panic(fmt.Sprintf("disttest: no stream leads from agent %d to agent %d of %d", from, to, s.n))
	}
}
