package process

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"fspda/dist"
)

// edges are the sessions between processes that follow each other.
type edges struct {
	mu   sync.Mutex
	open []*edge
}

// edge is a session. It is closed when a process at one of its ends is replaced.
type edge struct {
	records [2]chan []byte // by receiver
	closed  chan struct{}
}

func newEdge() *edge {
	return &edge{[2]chan []byte{make(chan []byte, 4), make(chan []byte, 4)}, make(chan struct{})}
}

// replace closes the sessions of a process, of which there are others then.
func (e *edges) replace(rank int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k := max(0, rank-1); k <= min(rank, len(e.open)-1); k++ {
		close(e.open[k].closed)
		e.open[k] = newEdge()
	}
}

// edgeNetwork is the network of a process. Each end opens a session once.
type edgeNetwork struct {
	Network
	*edges
	rank   int
	opened sync.Map
}

func (n *edgeNetwork) OpenEvaluations(ctx context.Context, with int) (dist.CheckedSession, error) {
	for ctx.Err() == nil {
		n.mu.Lock()
		e := n.open[min(n.rank, with)]
		n.mu.Unlock()
		if _, again := n.opened.LoadOrStore(e, true); !again {
			return end{edge: e, at: max(0, with-n.rank)}, nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil, ctx.Err()
}

// end is one end of an edge.
type end struct {
	dist.Session
	*edge
	at int // The end of the other process.
}

func (e end) Send(ctx context.Context, record []byte) error {
	select {
	case e.records[e.at] <- record:
		return nil
	case <-e.closed:
		return dist.ErrSessionClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e end) Take(ctx context.Context, take func([]byte) error) error {
	select {
	case record := <-e.records[1-e.at]:
		return take(record)
	case <-e.closed:
		return dist.ErrSessionClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sum makes the sum of 1000 + the numbers of all agents at an iteration, in pieces, at all of them.
func sum(a *attempt) (total float64, err error) {
	for k := range 5 {
		piece := []float64{0}
		if a.rank > 0 {
			err = a.Receive(a.rank-1, piece)
		}
		piece[0] += float64(1000*(a.t+k) + a.rank)
		if err == nil && a.rank < a.last {
			err = a.Send(a.rank+1, piece)
		}
		if err == nil && a.rank < a.last {
			err = a.Receive(a.rank+1, piece)
		}
		if err == nil && a.rank > 0 {
			err = a.Send(a.rank-1, piece)
		}
		if err != nil {
			return 0, err
		}
		total += piece[0]
	}
	return total, nil
}

// Processes that are replaced at any moment, from where an earlier evaluation was final, do not change
// any sum, and hold up none.
func TestChainSurvives(t *testing.T) {
	t.Parallel()
	const agents, evaluations = 4, 300
	net := &edges{}
	for range agents - 1 {
		net.open = append(net.open, newEdge())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var writer *chain // The chain of agent 0.
	parts, rows := map[[2]int]bool{}, 0
	report := func(at, rank int) {
		mu.Lock()
		defer mu.Unlock()
		parts[[2]int{at, rank}] = true
		for i := range agents {
			if !parts[[2]int{at, i}] {
				return
			}
		}
		rows = max(rows, at+1)
		go writer.finish(ctx, at)
	}
	var processes, left sync.WaitGroup
	left.Add(agents)
	var ends [agents]sync.Once
	start := func(rank, first int) (stop context.CancelFunc) {
		life, stop := context.WithCancel(ctx)
		mu.Lock()
		defer mu.Unlock()
		final := first - 1
		if rank == 0 {
			final = rows - 1
		}
		c := newChain(&edgeNetwork{edges: net, rank: rank}, rank, agents, final)
		if rank == 0 {
			writer = c
		}
		for at := range c.sides {
			processes.Go(func() { _ = c.serve(life, at) })
		}
		processes.Go(func() {
			for at := first; at < evaluations; at++ {
				final, err := c.evaluate(life, at, func(a *attempt) error {
					total, err := sum(a)
					if want := float64(agents*5*(1000*at+2000) + 5*6); err == nil && total != want {
						t.Errorf("agent %d has the sum %v at %d, want %v", rank, total, at, want)
					}
					if err == nil {
						report(at, rank)
					}
					return err
				})
				if err != nil || !final {
					return
				}
			}
			ends[rank].Do(left.Done)
		})
		return stop
	}
	var stops [agents]context.CancelFunc
	for rank := range agents {
		stops[rank] = start(rank, 0)
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		time.Sleep(time.Duration(draw.IntN(3000)) * time.Microsecond)
		rank := draw.IntN(agents)
		stops[rank]()
		net.replace(rank)
		mu.Lock()
		first := draw.IntN(rows + 1)
		mu.Unlock()
		stops[rank] = start(rank, first)
	}
	left.Wait()
	if ctx.Err() != nil || rows != evaluations {
		t.Errorf("%d evaluations are final, want %d", rows, evaluations)
	}
	cancel()
	processes.Wait()
}

// Agent 0 that has lost rows says so, since the others can not make them again.
func TestLostRows(t *testing.T) {
	t.Parallel()
	net := &edges{open: []*edge{newEdge()}}
	zero := newChain(&edgeNetwork{edges: net}, 0, 2, 3)
	one := newChain(&edgeNetwork{edges: net, rank: 1}, 1, 2, 7)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { _ = one.serve(ctx, before) }()
	go func() { _, _ = zero.evaluate(ctx, 4, func(a *attempt) error { return a.Send(1, []float64{1}) }) }()
	if err := zero.serve(ctx, after); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("%v", err)
	}
}
