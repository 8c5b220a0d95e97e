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
	"fspda/dist/disttest"
	"fspda/internal/rng"
	"fspda/train/algo"
)

// lab is a network of agents with quadratic objectives, each f_i(x) = |x - b_i|²/2, whose sum is
// least at the mean of the b_i.
type lab struct {
	t       *testing.T
	board   *disttest.Network
	graph   *dist.Graph
	mask    dist.Mask
	until   int
	slow    []time.Duration // time of a gradient
	noise   float64
	dropped time.Duration
	giveUp  time.Duration
	wire    dist.ValueFormat
	last    []*player // by rank: the latest life
	saved   []*View   // by rank: a checkpoint
	x, lam  [][]float32
	mu      sync.Mutex
}

// player is one life of an agent.
type player struct {
	*Agent
	lab    *lab
	id     int
	noise  rng.Stream
	life   *disttest.Node
	cancel context.CancelFunc
	done   chan error
	state  *algo.State
	grads  int
	meets  int
}

const labDim = 12

func newLab(t *testing.T, n, until int) *lab {
	g, err := dist.ParseGraph("complete", n, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := dist.ParseMask("randk", 0.5, []int{labDim}, 1)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, board: disttest.NewNetwork(n, 1, 2*time.Millisecond), graph: g, mask: m, until: until,
		last: make([]*player, n), saved: make([]*View, n), x: make([][]float32, n), lam: make([][]float32, n)}
	for range n {
		l.slow = append(l.slow, 10*time.Millisecond)
	}
	return l
}

// target is b_i.
func target(i int) []float64 {
	b := make([]float64, labDim)
	for k := range b {
		b[k] = float64((i*7+k*3)%11) / 5
	}
	return b
}

// host is a vector's numbers.
func host(v device.Vector) []float32 {
	h := make([]float32, v.Len())
	labDevice.Read(h, v)
	return h
}

var labDevice = cpu.New(cpu.Threads(1))

var labAlgo = algo.Async{SA: algo.SA{Gamma: 0.5, Beta: 1}, Coef: algo.Inverse, CMax: 10}

// start begins a life of agent i, from its checkpoint where there is one.
func (l *lab) start(i int) {
	p := &player{lab: l, id: i, life: l.board.Start(i), done: make(chan error, 1), noise: rng.New(5, "lab", uint64(i))}
	p.state = algo.NewState(labAlgo, labDevice, labDevice.NewVector(labDim))
	opt := Options{Self: i, Agents: l.graph.N, Edges: len(l.graph.Edges), Until: l.until, Algo: labAlgo, Alpha: 0.02,
		Eta: 0.008, Mask: l.mask, Format: l.wire, Seed: 3, CallRate: 1,
		Timeouts: Timeouts{Exchange: l.giveUp, Drop: l.dropped, Finish: 3 * time.Second},
		Network:  p.life, State: p.state, Trainer: p, Log: zap.NewNop(),
	}
	for k := range l.graph.N {
		if k != i {
			opt.Neighbours = append(opt.Neighbours, k)
		}
	}
	p.Agent = New(opt)
	if v := l.saved[i]; v != nil {
		labDevice.Write(p.state.X, l.x[i])
		for k, aux := range p.state.Aux {
			labDevice.Write(aux, l.lam[i][k*labDim:(k+1)*labDim])
		}
		p.Restore(*v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	l.last[i] = p
	go func() { p.done <- p.Run(ctx) }()
}

// Gradient implements [Trainer].
func (p *player) Gradient(ctx context.Context, dst, x device.Vector) error {
	select {
	case <-time.After(time.Duration(float64(p.lab.slow[p.id]) * (0.5 + p.noise.Float64()))):
	case <-ctx.Done():
		return ctx.Err()
	}
	g := host(x)
	for k, b := range target(p.id) {
		g[k] += float32(p.lab.noise*p.noise.Norm() - b)
	}
	labDevice.Write(dst, g)
	return nil
}

// Advanced implements [Trainer].
func (p *player) Advanced(v View) bool {
	p.lab.keep(p.id, p, v, false)
	return false
}

// Applied implements [Trainer].
func (p *player) Applied() { p.grads++ }

// Exchanged implements [Trainer].
func (p *player) Exchanged(int, int) { p.meets++ }

// Called implements [Trainer].
func (p *player) Called() {}

// Finished implements [Trainer].
func (p *player) Finished(View) {}

// keep makes a checkpoint now and then.
func (l *lab) keep(i int, p *player, v View, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now && v.Desk.T%40 != 39 {
		return
	}
	w := View{Desk: v.Desk}
	for _, e := range v.Edges {
		s := labDevice.NewVector(labDim)
		labDevice.Gather(s, e.Dual.S, nil)
		e.Dual.S = s
		w.Edges = append(w.Edges, e)
	}
	l.saved[i], l.x[i] = &w, host(p.state.X)
	l.lam[i] = nil
	for _, aux := range p.state.Aux {
		l.lam[i] = append(l.lam[i], host(aux)...)
	}
}

// kill ends an agent without a word.
func (l *lab) kill(i int) {
	p := l.last[i]
	p.life.Kill()
	p.cancel()
	<-p.done
	p.Close()
	l.last[i] = nil
}

// finish waits for all who live.
func (l *lab) finish() {
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
			l.t.Fatalf("agent %d does not come to its end: %+v", i, p.desk)
		}
	}
	for _, p := range l.last {
		if p != nil {
			p.Close()
		}
	}
}

// dualSum is |Σ lambda| over those who live, and Σ |lambda|.
func (l *lab) dualSum() (sum, scale float64) {
	total := make([]float64, labDim)
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
				l.t.Errorf("mail is left: %v", v)
			}
		}
	}
	for _, v := range total {
		sum += v * v
	}
	return math.Sqrt(sum), scale
}

// distance is the largest |x_i - x*|, where x* is the optimum of those given.
func (l *lab) distance(of ...int) (worst float64) {
	best := make([]float64, labDim)
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

func (l *lab) check(limit float64, of ...int) {
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
				if q := l.last[e.peer]; q != nil && !e.lost {
					f := q.edge(p.opt.Self)
					if e.dual.Epoch != f.dual.Epoch || e.dual.N != f.dual.N {
						l.t.Errorf("edge %d-%d: %d.%d there, %d.%d here", p.opt.Self, e.peer, e.dual.Epoch, e.dual.N,
							f.dual.Epoch, f.dual.N)
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
		l.t.Error("nobody met")
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

// Without faults the agents come to the optimum of the sum, at any speeds.
func TestConverges(t *testing.T) {
	for name, slowest := range map[string]time.Duration{"equal": 10 * time.Millisecond,
		"straggler": 60 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 4, 2500)
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
					t.Logf("agent %d: %d gradients, %d exchanges, time %d", i, p.grads, p.meets, p.desk.T)
				}
				t.Logf("distance %g", l.distance(upTo(4)...))
			})
		})
	}
}
