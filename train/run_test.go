package train

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fspda/device"
	"fspda/internal/testing/disttest"
	"fspda/train/algo"
	"fspda/train/clip"
)

// None of these edits may change the result, not by one bit.
func TestHarmless(t *testing.T) {
	for _, base := range []func(*Config){
		func(*Config) {},
		func(c *Config) { c.Algo, c.Momentum, c.Edges, c.Mask = "dsgd", 0.5, "bernoulli(0.4)", "bernoulli" },
		func(c *Config) { c.Algo = "sgd" },
		func(c *Config) {
			c.Momentum, c.Edges, c.Graph, c.Density, c.Eta = 0.5, "matching", "complete", 1, AutoFloat{V: 0.001}
		},
	} {
		c := small()
		base(&c)
		t.Run(fmt.Sprintf("%s %s", c.Algo, c.Edges), func(t *testing.T) {
			want := trace(t, play(t, c, Options{}))
			for name, run := range map[string]func() *Result{
				"one core": func() *Result {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
					c := c
					c.Threads = 1
					return play(t, c, Options{})
				},
				"eight threads": func() *Result {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
					c := c
					c.Threads = 8
					return play(t, c, Options{})
				},
				"delayed and reordered messages": func() *Result {
					return play(t, c, Options{Transport: disttest.NewSim(c.Agents, 9,
						disttest.Faults{MaxDelay: 5, Reorder: true})})
				},
				"checkpoints all the time": func() *Result {
					c := c
					c.Checkpoint = 0.001
					res, err := inFolder(t, context.Background(), c, runFolder(t), Options{})
					if err != nil {
						t.Fatal(err)
					}
					return res
				},
				"slow observers": func() *Result {
					return play(t, c, Options{OnRow: func(Row) { time.Sleep(time.Millisecond) },
						OnStep: func(int) { runtime.Gosched() }})
				},
			} {
				if got := trace(t, run()); got != want {
					t.Errorf("%s: the run changed", name)
				}
			}
		})
	}
}

// More evaluation points add rows and change nothing in between.
func TestEvaluationDoesNotDisturb(t *testing.T) {
	c := small()
	few := play(t, c, Options{})
	c.EvalPoints = c.Iterations
	many := play(t, c, Options{})
	if len(few.Rows) != 5 || len(many.Rows) != c.Iterations+1 {
		t.Fatalf("%d and %d rows", len(few.Rows), len(many.Rows))
	}
	for _, r := range few.Rows {
		m := many.Rows[r.Iteration]
		m.WallS = r.WallS
		if fmt.Sprint(r) != fmt.Sprint(m) { // as text, since columns that are not measured are NaN
			t.Errorf("iteration %d differs: %+v, %+v", r.Iteration, r, m)
		}
	}
	if !slices.EqualFunc(few.Models, many.Models, slices.Equal) {
		t.Error("the models differ")
	}
}

// Another seed is another run: the comparison above can fail.
func TestSeedMatters(t *testing.T) {
	c := small()
	a := trace(t, play(t, c, Options{}))
	c.Seed++
	if b := trace(t, play(t, c, Options{})); a == b {
		t.Error("two seeds give the same trajectory")
	}
}

// The run, with all its goroutines, is the mathematics of algo played in lockstep by the plainest
// program.
func TestRunIsLockstep(t *testing.T) {
	for _, edit := range []func(*Config){
		func(*Config) {},
		func(c *Config) { c.Momentum = 0.5; c.Edges = "full"; c.Gamma = 0.3 },
		func(c *Config) { c.Algo, c.Weights, c.Edges = "dsgd", "metropolis", "bernoulli(0.5)" },
		func(c *Config) { c.Algo, c.Order = "dsgd", "atc" },
	} {
		c := small()
		edit(&c)
		s, m := resolve(t, c)
		got := play(t, c, Options{}).Models
		want := lockstep(t, s, m)
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%s %s: agent %d differs from the plain program", c.Algo, c.Edges, i)
			}
		}
	}
}

func lockstep(t *testing.T, s *Setup, m Model) [][]float32 {
	dev := cpuDevice
	n := s.Graph.N
	states := make([]*algo.State, n)
	for i := range states {
		x := dev.NewVector(s.Dim)
		dev.Write(x, m.Init(s.Config.Seed))
		states[i] = algo.NewState(s.Algo, dev, x)
		states[i].Connect(s.Algo, s.Graph.Neighbours(i))
	}
	services := newPlainServices(s, m, dev)
	var late []algo.Round
	for it := range s.Config.Iterations {
		rounds := make([]*algo.Round, n)
		for i := range rounds {
			rounds[i] = plainRound(t, s, m, dev, it, i)
			services.dress(t, rounds[i])
		}
		for _, post := range algo.Stages(s.Algo) {
			for i, r := range rounds {
				if err := post(states[i], r); err != nil {
					t.Fatal(err)
				}
			}
			late = lateRounds(s, rounds, late, it)
			for i, r := range rounds {
				for k := range r.Links {
					for _, l := range rounds[r.Links[k].Peer].Links {
						if l.Peer == i {
							r.Links[k].Received = l.Sent
							services.heard(r, k)
						}
					}
				}
			}
		}
		for i, r := range rounds {
			if err := s.Algo.Mix(states[i], r); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, s.Dim)
		dev.Read(out[i], states[i].X)
	}
	return out
}

// lateRounds takes the rounds of an iteration with links apart, if messages are awaited in a later
// one, and puts those in their place that are awaited now.
func lateRounds(s *Setup, rounds []*algo.Round, late []algo.Round, t int) (next []algo.Round) {
	delay := s.Traits.Delay
	if delay == 0 {
		return nil
	}
	if next = late; len(rounds[0].Links) > 0 {
		next = nil
		for _, r := range rounds {
			next = append(next, *r)
		}
	}
	for i, r := range rounds {
		if r.Links = nil; late != nil && late[i].T+delay == t {
			r.T, r.Links, r.Shared = late[i].T, late[i].Links, late[i].Shared
		}
	}
	return next
}

func plainRound(t *testing.T, s *Setup, m Model, dev device.Device, it, i int) *algo.Round {
	alpha, eta := s.StepSizes(it)
	r := &algo.Round{T: it, Self: i, Alpha: alpha, Eta: eta, Acquire: dev.NewVector}
	r.Post = func(link int, v ...device.Vector) { r.Links[link].Sent = append(r.Links[link].Sent, v...) }
	r.Grad = func(dst, x device.Vector) error {
		l, err := s.Loader(i, 0, 0)
		if err != nil {
			return err
		}
		defer l.Close()
		var b device.Batch
		l.Batch(&b, it)
		_, err = m.Grad(dst, x, b)
		clip.New(s, dev).Clip(dst, x)
		return err
	}
	events := s.Process.Active(nil, it)
	degree := make([]int, s.Graph.N)
	for _, e := range events {
		degree[e.From]++
		degree[e.To]++
	}
	for _, e := range events {
		if peer, ok := e.Peer(i); ok {
			from, to := i, peer
			if s.AllReduces() {
				from, to = 0, 0
			}
			idx := s.Mask.Draw(nil, it, from, to)
			l := algo.Link{Peer: peer, Len: len(idx), ActiveWeight: 1 / float64(1+max(degree[i], degree[peer]))}
			if s.Process.Weighted() {
				l.ActiveWeight = s.Process.Weight(e, it)
			}
			if !s.Mask.Dense() {
				l.Mask = dev.NewIndex(idx, nil)
			}
			if s.Mixing != nil {
				l.FixedWeight = s.Mixing.At(i, peer)
			}
			r.Links = append(r.Links, l)
		}
	}
	if n := s.Graph.N; len(events) == n*(n-1)/2 && s.Mask.Dense() {
		r.Shared = plainCommon(dev, s.Dim)
	}
	return r
}

// plainCommon has each agent fill a vector of its own: the shared vectors have the same bits,
// whichever agent fills them.
func plainCommon(dev device.Device, dim int) func(int, func(device.Vector)) device.Vector {
	return func(_ int, fill func(device.Vector)) device.Vector {
		v := dev.NewVector(dim)
		fill(v)
		return v
	}
}

// In central SGD all agents hold one model, to the bit, and the ledger has the all-reduce formula.
func TestCentralSGD(t *testing.T) {
	c := small()
	c.Algo = "sgd"
	r := play(t, c, Options{})
	for i, x := range r.Models {
		if !slices.Equal(x, r.Models[0]) {
			t.Errorf("agent %d has left agent 0", i)
		}
	}
	last := r.Rows[len(r.Rows)-1]
	d := uint64(labModel(t, c).Dim())
	if want := uint64(c.Iterations) * 2 * uint64(c.Agents-1) * 32 * d; last.BitsTotal != want ||
		last.BitsReference != want {
		t.Errorf("%d bits, %d in reference accounting, want 2(n-1)·32·d·T = %d", last.BitsTotal, last.BitsReference,
			want)
	}
	if last.TestAccAvg < 0.3 {
		t.Errorf("accuracy %v: the model has not learned", last.TestAccAvg)
	}
}

// FSPDA-SA over one edge at a time: 2·32·k bits an iteration, one side's indices on top in the
// other accountings.
func TestBits(t *testing.T) {
	c := small()
	s, _ := resolve(t, c)
	last := play(t, c, Options{}).Rows[c.EvalPoints]
	T, k := uint64(c.Iterations), uint64(s.Mask.Len())
	index := uint64(math.Ceil(math.Log2(float64(s.Dim))))
	if last.BitsSharedSeed != T*2*32*k || last.BitsPacked != T*(2*32*k+index*k) ||
		last.BitsReference != T*(2*32*k+64*k) || last.WireBytes != T*2*4*k {
		t.Errorf("%+v with k = %d", last, k)
	}
	c.Accounting = "packed"
	if r := play(t, c, Options{}).Rows[c.EvalPoints]; r.BitsTotal != last.BitsPacked ||
		r.BitsSharedSeed != last.BitsSharedSeed {
		t.Errorf("bits_total is %d in packed accounting", r.BitsTotal)
	}
}

// Edges that fail fail for both ends: the duals still sum to zero, what did not happen costs
// nothing, and the faults repeat.
func TestFailingEdges(t *testing.T) {
	c := small()
	c.Iterations = 200
	c.Edges = "bernoulli(0.7)"
	cut := func() *Result {
		return play(t, c, Options{Transport: disttest.NewSim(c.Agents, 4, disttest.Faults{Cut: 0.5, MaxDelay: 3})})
	}
	a, whole := cut(), play(t, c, Options{})
	last, wholeLast := a.Rows[len(a.Rows)-1], whole.Rows[len(whole.Rows)-1]
	if last.DualSum > 1e-4 {
		t.Errorf("|sum of duals| = %v", last.DualSum)
	}
	if ratio := float64(last.BitsTotal) / float64(wholeLast.BitsTotal); ratio < 0.4 || ratio > 0.6 {
		t.Errorf("half of the edges failed, but the share of bits is %.2f", ratio)
	}
	if trace(t, a) != trace(t, cut()) {
		t.Error("the runs with the same faults differ")
	}
	c.Algo = "sgd"
	if _, err := try(t, context.Background(), c,
		Options{Transport: disttest.NewSim(c.Agents, 4, disttest.Faults{Cut: 0.5})}); err == nil {
		t.Error("central SGD continued without a message that it needs")
	}
}

// Duals stay at rounding level over many noisy one-edge exchanges.
func TestDualSumStaysSmall(t *testing.T) {
	c := small()
	c.Iterations, c.Hidden = 3000, Widths{2}
	r := play(t, c, Options{})
	last := r.Rows[len(r.Rows)-1]
	if last.DualSum > 1e-4 || last.DualSum == 0 {
		t.Errorf("|sum of duals| = %v", last.DualSum)
	}
}

func TestOneAgent(t *testing.T) {
	for _, name := range Algorithms() {
		c := small()
		c.Agents, c.Graph, c.Algo, c.LocalSteps, c.EvalPoints = 1, "complete", name, 0, 3
		if name == "prox-gpda" {
			continue // has no step size without a neighbour, and is refused
		}
		r := play(t, c, Options{})
		if last := r.Rows[len(r.Rows)-1]; last.Consensus != 0 || last.BitsTotal != 0 ||
			last.TestAccAvg != last.TestAccMin {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// A run that diverges ends in the same iteration with the same rows, however many threads there
// are, and never hangs.
func TestDivergence(t *testing.T) {
	for _, name := range []string{"fspda-sa", "dsgd", "sgd"} {
		c := small()
		c.Algo, c.Alpha, c.Activation, c.EvalPoints = name, 1e6, "relu", 30
		var want string
		for try, threads := range []int{1, 4, 2} {
			old := runtime.GOMAXPROCS(threads)
			r := play(t, c, Options{})
			runtime.GOMAXPROCS(old)
			if r.Status != Diverged || r.Diverged == nil || r.Models != nil {
				t.Fatalf("%s: status %s", name, r.Status)
			}
			got := r.Diverged.Error() + trace(t, r)
			if try == 0 {
				want = got
			} else if got != want {
				t.Errorf("%s: %d threads: another final model", name, threads)
			}
		}
	}
}

// Agents that ran ahead of a divergence wait for nobody: neither for a message nor for a snapshot
// to be given back. And of all who break in one iteration the first by number is named, though it
// come last.
func TestDivergenceFreesEverybody(t *testing.T) {
	for _, at := range []int{0, 3} { // agent 0 holds the others up in this iteration, and breaks in the third
		synctest.Test(t, func(t *testing.T) {
			c := small()
			c.Edges, c.EvalPoints, c.Threads = "empty", c.Iterations, 1
			m := &breaking{Model: labModel(t, c), wait: at, brk: [5]int{3, at, at, 3, 3}}
			if at == 0 {
				m.brk = [5]int{0, 99, 99, 99, 99}
			}
			r := play(t, c, Options{Model: m})
			if r.Status != Diverged || r.Diverged.Agent != 0 || r.Diverged.T != at {
				t.Errorf("%s, %v", r.Status, r.Diverged)
			}
			if len(r.Rows) != at+1 {
				t.Errorf("%d rows, want those of the heads up to iteration %d", len(r.Rows), at)
			}
		})
	}
}

// breaking is a model in which agent i, known by its labels in a sorted split, breaks at its
// brk[i]-th gradient. Agent 0 takes one only when all others can do no more.
type breaking struct {
	Model
	wait int // the gradient of agent 0 before which it waits
	brk  [5]int
	mu   sync.Mutex
	seen [5]int
}

func (b *breaking) StartGrad(dst, x, buffers device.Vector, batch device.Batch) func() (float64, error) {
	if batch.N() != 16 {
		return b.Model.StartGrad(dst, x, buffers, batch)
	}
	i := batch.Y[0] / 2
	b.mu.Lock()
	at := b.seen[i]
	b.seen[i]++
	b.mu.Unlock()
	if i == 0 && at == max(0, b.wait-1) {
		synctest.Wait()
	}
	if at == b.brk[i] {
		return ended(math.NaN(), nil)
	}
	return b.Model.StartGrad(dst, x, buffers, batch)
}

// An error ends the run of an agent that meets nobody and leaves nothing.
func TestErrorReachesTheLonely(t *testing.T) {
	c := small()
	c.Agents, c.Graph, c.Edges, c.Iterations, c.EvalPoints = 1, "complete", "empty", 1<<40, 1
	m := &failing{Model: labModel(t, c), score: true} // in the evaluation of iteration 0
	if _, err := try(t, context.Background(), c, Options{Model: m}); err == nil {
		t.Fatal("no error although an evaluation failed")
	}
}

// An error in one agent ends the run with that error, and everybody's wait.
func TestErrorEndsRun(t *testing.T) {
	c := small()
	m := &failing{Model: labModel(t, c)}
	m.after.Store(40)
	if _, err := try(t, context.Background(), c, Options{Model: m}); err == nil || err.Error() == "" {
		t.Fatalf("error %v", err)
	}
	m = &failing{Model: labModel(t, c), score: true} // in the evaluation of iteration 0
	if _, err := try(t, context.Background(), c, Options{Model: m}); err == nil {
		t.Fatal("no error although an evaluation failed")
	}
}

// failing is a model whose device breaks after some calls.
type failing struct {
	Model
	after atomic.Int64
	score bool
}

func (f *failing) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	if !f.score && b.N() == 16 {
		if f.after.Add(-1) < 0 {
			return ended(0, fmt.Errorf("device lost"))
		}
	}
	return f.Model.StartGrad(dst, x, buffers, b)
}

func (f *failing) Score(x device.Vector, b device.Batch) (float64, float64, float64, error) {
	if f.score {
		return 0, 0, 0, fmt.Errorf("device lost")
	}
	return f.Model.Score(x, b)
}

// A run whose length is given in epochs equals the run of as many iterations.
func TestEpochsAreIterations(t *testing.T) {
	c := small()
	c.Iterations = 50
	want := play(t, c, Options{})
	c.Iterations, c.Epochs = Default().Iterations, 10
	if trace(t, play(t, c, Options{})) != trace(t, want) {
		t.Error("10 epochs and 50 iterations give different runs")
	}
}

// The rows of a run of epochs have whole epochs.
func TestRowsOfEpochs(t *testing.T) {
	c := small()
	c.Iterations, c.EvalPoints = Default().Iterations, Default().EvalPoints
	c.Epochs, c.EvalEpochs = 10, 3
	r := play(t, c, Options{})
	if len(r.Rows) != 5 || r.Rows[1].Epoch != 3 || r.Rows[4].Epoch != 10 {
		t.Errorf("rows %+v", r.Rows)
	}
}
