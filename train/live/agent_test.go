package live

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"fspda/cpu"
	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/internal/testing/disttest"
	"fspda/train/algo"
)

// testNetwork is a network of agents with the objectives f_i(x) = |x - b_i|²/2, whose sum is
// minimal at the mean of the b_i.
type testNetwork struct {
	t               *testing.T
	net             *disttest.Network
	graph           *dist.Graph
	mask            dist.Mask
	until           int
	slow            []time.Duration // time of a gradient
	noise           float64
	dropAfter       time.Duration
	exchangeTimeout time.Duration
	format          dist.ValueFormat
	last            []*testAgent // by rank: the latest incarnation
	saved           []*Snapshot  // by rank: a checkpoint
	x, lam          [][]float32
	mu              sync.Mutex
}

// testAgent is one incarnation of an agent.
type testAgent struct {
	*Agent
	net    *testNetwork
	id     int
	noise  rng.Stream
	node   *disttest.Node
	cancel context.CancelFunc
	done   chan error
	state  *algo.State
	grads  int
	meets  int
	stop   bool // Advanced stops the agent
}

const testDim = 12

func newTestNetwork(t *testing.T, n, until int) *testNetwork {
	g, err := dist.ParseGraph("complete", n, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := dist.ParseMask("randk", 0.5, []int{testDim}, 1)
	if err != nil {
		t.Fatal(err)
	}
	l := &testNetwork{t: t, net: disttest.NewNetwork(n, 1, 2*time.Millisecond), graph: g, mask: m, until: until,
		last: make([]*testAgent, n), saved: make([]*Snapshot, n), x: make([][]float32, n), lam: make([][]float32, n)}
	for range n {
		l.slow = append(l.slow, 10*time.Millisecond)
	}
	return l
}

// target returns b_i.
func target(i int) []float64 {
	b := make([]float64, testDim)
	for k := range b {
		b[k] = float64((i*7+k*3)%11) / 5
	}
	return b
}

// host returns the values of a vector.
func host(v device.Vector) []float32 {
	h := make([]float32, v.Len())
	testDevice.Read(h, v)
	return h
}

var testDevice = cpu.New(cpu.Threads(1))

var testAlgo = algo.Async{SA: algo.SA{Gamma: 0.5, Beta: 1}, Protocol: algo.Protocol{Coef: algo.Inverse, CMax: 10}}

// start starts agent i, from its checkpoint if there is one.
func (l *testNetwork) start(i int) {
	p := &testAgent{net: l, id: i, node: l.net.Start(i), done: make(chan error, 1), noise: rng.New(5, "lab", uint64(i))}
	p.state = algo.NewState(testAlgo, testDevice, testDevice.NewVector(testDim))
	opt := Options{Self: i, Agents: l.graph.N, Edges: len(l.graph.Edges), Until: l.until,
		Algo: testAlgo, Alpha: 0.02, Eta: 0.008, Mask: l.mask, Format: l.format, Seed: 3, CallRate: 1,
		Timeouts: Timeouts{Exchange: l.exchangeTimeout, Drop: l.dropAfter, Finish: 3 * time.Second}, Network: p.node,
		State: p.state, Trainer: p, Log: zap.NewNop()}
	for k := range l.graph.N {
		if k != i {
			opt.Neighbours = append(opt.Neighbours, k)
		}
	}
	p.Agent = New(opt)
	if v := l.saved[i]; v != nil {
		testDevice.Write(p.state.X, l.x[i])
		for k, aux := range p.state.Aux {
			testDevice.Write(aux, l.lam[i][k*testDim:(k+1)*testDim])
		}
		p.Restore(*v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	l.last[i] = p
	go func() { p.done <- p.Run(ctx) }()
}

// Gradient implements [Trainer].
func (p *testAgent) Gradient(ctx context.Context, dst, x device.Vector) error {
	select {
	case <-time.After(time.Duration(float64(p.net.slow[p.id]) * (0.5 + p.noise.Float64()))):
	case <-ctx.Done():
		return ctx.Err()
	}
	g := host(x)
	for k, b := range target(p.id) {
		g[k] += float32(p.net.noise*p.noise.Norm() - b)
	}
	testDevice.Write(dst, g)
	return nil
}

// Advanced implements [Trainer].
func (p *testAgent) Advanced(v Snapshot) bool {
	p.net.checkpoint(p.id, p, v, false)
	return p.stop
}

// Applied implements [Trainer].
func (p *testAgent) Applied() { p.grads++ }

// Exchanged implements [Trainer].
func (p *testAgent) Exchanged(int, int) { p.meets++ }

// Called implements [Trainer].
func (p *testAgent) Called() {}

// Finished implements [Trainer].
func (p *testAgent) Finished(Snapshot) {}

// checkpoint saves a checkpoint every 40 iterations, or if now is set.
func (l *testNetwork) checkpoint(i int, p *testAgent, v Snapshot, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now && v.Clock.T%40 != 39 {
		return
	}
	w := Snapshot{Clock: v.Clock}
	for _, e := range v.Edges {
		s := testDevice.NewVector(testDim)
		testDevice.Do(device.Gather(s, e.Dual.S, nil))
		e.Dual.S = s
		w.Edges = append(w.Edges, e)
	}
	l.saved[i], l.x[i] = &w, host(p.state.X)
	l.lam[i] = nil
	for _, aux := range p.state.Aux {
		l.lam[i] = append(l.lam[i], host(aux)...)
	}
}

// kill ends an agent without notice.
func (l *testNetwork) kill(i int) {
	p := l.last[i]
	p.node.Kill()
	p.cancel()
	<-p.done
	p.Close()
	l.last[i] = nil
}

// finish waits for all running agents.
func (l *testNetwork) finish() {
	l.t.Helper()
	for i, p := range l.last {
		if p == nil {
			continue
		}
		select {
		case err := <-p.done:
			if err != nil {
				l.t.Errorf("agent %d: %v", i, err)
			}
		case <-time.After(10 * time.Minute):
			l.t.Fatalf("agent %d does not finish: %+v", i, p.clock)
		}
	}
	for _, p := range l.last {
		if p != nil {
			p.Close()
		}
	}
}

// dualSum returns |Σ lambda| over the running agents, and Σ |lambda|.
func (l *testNetwork) dualSum() (sum, scale float64) {
	total := make([]float64, testDim)
	for _, p := range l.last {
		if p == nil {
			continue
		}
		sq := 0.0
		for k, v := range host(p.state.Aux[0]) {
			total[k] += float64(v)
			sq += float64(v) * float64(v)
		}
		scale += math.Sqrt(sq)
		for _, v := range host(p.state.Aux[1]) {
			if v != 0 {
				l.t.Errorf("the mailbox is not empty: %v", v)
			}
		}
	}
	for _, v := range total {
		sum += v * v
	}
	return math.Sqrt(sum), scale
}

// distance returns the largest |x_i - x*|, where x* is the optimum of the given agents.
func (l *testNetwork) distance(of ...int) (worst float64) {
	best := make([]float64, testDim)
	for _, i := range of {
		for k, v := range target(i) {
			best[k] += v / float64(len(of))
		}
	}
	for _, p := range l.last {
		if p == nil {
			continue
		}
		sq := 0.0
		for k, v := range host(p.state.X) {
			sq += (float64(v) - best[k]) * (float64(v) - best[k])
		}
		worst = max(worst, math.Sqrt(sq))
	}
	return worst
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func (l *testNetwork) check(limit float64, of ...int) {
	l.t.Helper()
	sum, scale := l.dualSum()
	if !(sum <= 1e-5*(1+scale)) {
		l.t.Errorf("the duals sum to %g, their norms to %g", sum, scale)
	}
	if d := l.distance(of...); !(d <= limit) {
		l.t.Errorf("distance %g from the optimum, want at most %g", d, limit)
	}
	meets := 0
	for _, p := range l.last {
		if p != nil {
			meets += p.meets
			for _, e := range p.edges {
				if q := l.last[e.peer]; q != nil && !e.dropped {
					f := q.edge(p.opt.Self)
					if e.dual.Epoch != f.dual.Epoch || e.dual.N != f.dual.N {
						l.t.Errorf("edge %d-%d: %d.%d at one end, %d.%d at the other", p.opt.Self, e.peer, e.dual.Epoch,
							e.dual.N, f.dual.Epoch, f.dual.N)
					}
					for k, v := range host(e.dual.S) {
						if v != -host(f.dual.S)[k] {
							l.t.Errorf("edge %d-%d: the duals are not negatives of each other", p.opt.Self, e.peer)
							break
						}
					}
				}
			}
		}
	}
	if meets == 0 {
		l.t.Error("no exchange took place")
	}
}

func (a *Agent) edge(peer int) *edge {
	for _, e := range a.edges {
		if e.peer == peer {
			return e
		}
	}
	return nil
}

// Without faults, the agents converge to the optimum of the sum at any speeds.
func TestConverges(t *testing.T) {
	for name, slowest := range map[string]time.Duration{"equal": 10 * time.Millisecond,
		"straggler": 60 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newTestNetwork(t, 4, 2500)
				l.slow[3] = slowest
				for i := range 4 {
					l.start(i)
				}
				begin := time.Now()
				l.finish()
				l.check(0.6, upTo(4)...)
				if took := time.Since(begin); took > 50*time.Second {
					t.Errorf("4000 iterations of 10 ms took %v", took)
				}
				for i, p := range l.last {
					t.Logf("agent %d: %d gradients, %d exchanges, time %d", i, p.grads, p.meets, p.clock.T)
				}
				t.Logf("distance %g", l.distance(upTo(4)...))
			})
		})
	}
}
