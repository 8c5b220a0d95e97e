package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"fspda/cpu"
	"fspda/dist"
	"fspda/dist/discover/nats"
	"fspda/dist/link"
	"fspda/train/membership"
	"fspda/train/membership/agreement"
	"fspda/train/process"
	"fspda/train/runfolder"
)

// elasticProcesses is a run over links in which the last agents die in the middle of an exchange.
type elasticProcesses struct {
	t    *testing.T
	c    Config
	join string
	// dies reports whether the last agent dies instead of sending a message.
	dies func(e *elasticProcesses, m dist.Message) bool
	// also reports it of the agent before the last one; nil: that agent lives.
	also func(e *elasticProcesses, m dist.Message) bool
	// first reports it of agent 0; nil: that agent lives.
	first  func(m dist.Message) bool
	dir    string       // Where agents keep checkpoints, in a folder for each life; empty: they keep none.
	life   [4]int       // Of the agents that are started.
	at     atomic.Int64 // The iteration that agent 0 is in.
	groups []*agreement.Group

	// crash is the iteration in which the process of agent 1 ends once in place of sending; 0: none. It
	// begins again with the checkpoint of an iteration after the first of saves, up to the second.
	crash int
	saves [2]int
	// ahead is Elastic.ahead. If it is not 0, a new agent takes the place of the last one.
	ahead int
	// resigns says that it is dropped after that.
	resigns bool
	died    context.Context // Ends when one of the last agents has died. The process begins again after it.
	death   context.CancelFunc
}

// mortal is a Network that dies in place of sending a message.
type mortal struct {
	*link.Node
	dies func(dist.Message) bool
	died func()
}

func (n mortal) Send(ctx context.Context, m dist.Message) error {
	if n.dies(m) {
		m.Release()
		n.Node.Close()
		n.died()
		<-ctx.Done()
		return ctx.Err()
	}
	return n.Node.Send(ctx, m)
}

// crashing is a Network of a process that ends in place of sending in an iteration. It asks for a
// checkpoint before.
type crashing struct {
	*link.Node
	e     *elasticProcesses
	asked chan struct{}
}

var errCrash = errors.New("the process ends")

func (n crashing) CheckpointRequested() <-chan struct{} { return n.asked }

func (n crashing) Advance(t int, phase dist.Phase) {
	if phase == dist.Working && (t == n.e.saves[0] || t == n.e.saves[0]+1) {
		n.asked <- struct{}{} // The first was heeded when the second is taken.
	}
	n.Node.Advance(t, phase)
}

func (n crashing) Send(ctx context.Context, m dist.Message) error {
	if m.T < n.e.crash {
		return n.Node.Send(ctx, m)
	}
	m.Release()
	n.Node.Close()
	return errCrash
}

// crashes returns the Network of agent 1, whose process ends later.
func (e *elasticProcesses) crashes(n *link.Node, s *Setup, store *runfolder.AgentStore) (process.Network, error) {
	ck, _, _, err := store.Newest(s, 1, nil)
	if err != nil {
		return nil, err
	}
	if ck == nil {
		return crashing{n, e, make(chan struct{})}, nil
	}
	defer ck.Close()
	if ck.Iteration <= e.saves[0] || ck.Iteration > e.saves[1] {
		e.t.Errorf("agent 1 goes on from iteration %d, want one of %v", ck.Iteration, e.saves)
	}
	return n, nil
}

// one runs one agent. It calls ready with the address of its server.
func (e *elasticProcesses) one(ctx context.Context, rank int, ready func(string)) (*Result, error) {
	s, m := resolve(e.t, e.c)
	life := 0
	if rank < len(e.life) {
		life = e.life[rank]
	}
	by := nats.Options{Run: "elastic", Self: rank, Agents: e.c.Agents, Server: nats.Server{Listen: "127.0.0.1:0"}}
	if rank > 0 {
		by.Server.Join = []string{e.join}
	}
	found, err := nats.Open(by)
	if err != nil {
		return nil, err
	}
	dev := cpu.New()
	n, err := link.Open(link.Options{Run: "elastic", Self: rank, Agents: e.c.Agents, Pool: dist.NewPool(dev),
		Dim: s.Dim, Codec: s.Codec(), Wire: s.WireFormat(), Discovery: found, Listen: "127.0.0.1:0",
		Links: link.Links{Pause: 200 * time.Millisecond, Life: life}, Durable: e.dir != ""})
	if err != nil {
		return nil, err
	}
	defer n.Close()
	ready(found.Address())
	file, dropAfter := "", 3*time.Second
	if e.crash > 0 {
		dropAfter = 12 * time.Second // On a loaded machine the process takes a while to begin again.
		if rank == 1 {
			file = filepath.Join(e.dir, "members")
		}
	}
	g, err := agreement.Open(agreement.Options{Rules: s.MemberRules(), Self: rank, Sessions: n, Life: life,
		File: file, DropAfter: dropAfter})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	e.groups[rank] = g
	opt := Options{Device: dev, Model: m, Process: &Process{Rank: rank, Network: n,
		Elastic: &Elastic{Agreement: g, Slots: n, Life: life, ahead: e.ahead}},
		OnStep: func(t int) { e.at.Store(int64(t)) }}
	if e.dir != "" {
		if opt.Process.Store, err = runfolder.OpenAgentStore(e.folder(life), rank); err != nil {
			return nil, err
		}
		defer opt.Process.Store.Close()
	}
	if e.crash > 0 && rank == 1 {
		if opt.Process.Network, err = e.crashes(n, s, opt.Process.Store); err != nil {
			return nil, err
		}
	}
	if dies := e.dying(rank, life); dies != nil {
		opt.Process.Network = mortal{n, dies, e.death}
		context.AfterFunc(ctx, g.Close)
	}
	return Run(ctx, s, opt)
}

// folder is where agents of a life keep checkpoints.
func (e *elasticProcesses) folder(life int) string { return filepath.Join(e.dir, strconv.Itoa(life)) }

// dying reports whether an agent dies instead of sending a message; nil: it does not die.
func (e *elasticProcesses) dying(rank, life int) func(dist.Message) bool {
	dies := e.also
	switch {
	case rank == 0:
		return e.first
	case rank < e.survivors() || life > 0:
		return nil
	case rank == e.c.Agents-1:
		dies = e.dies
	}
	return func(m dist.Message) bool { return dies(e, m) }
}

// survivors is the number of agents that do not die.
func (e *elasticProcesses) survivors() int {
	if e.dies == nil {
		return e.c.Agents
	}
	if e.also == nil {
		return e.c.Agents - 1
	}
	return e.c.Agents - 2
}

// replays compares a run with one in one process by the log: the models of the members, and the rows
// after the last change, up to totals that an agent takes with it when it dies.
func (e *elasticProcesses) replays(got *Result, log []membership.Epoch, file string) {
	e.t.Helper()
	if err := os.WriteFile(file, membership.Text(log), 0o644); err != nil {
		e.t.Fatal(err)
	}
	c := e.c
	c.Membership = file
	again := play(e.t, c, Options{})
	alive := e.survivors()
	if e.ahead > 0 {
		alive = e.c.Agents
	}
	for i := range alive {
		if !slices.Equal(again.Models[i], got.Models[i]) {
			e.t.Errorf("agent %d of the log played again differs: %s", i, membership.Text(log))
		}
	}
	for k, row := range got.Rows {
		if len(log) > 0 && row.Iteration < log[len(log)-1].At {
			continue
		}
		want := again.Rows[k]
		row.Traffic, row.GradsTotal, row.Times = want.Traffic, want.GradsTotal, want.Times
		if got, want := fmt.Sprintf("%+v", row), fmt.Sprintf("%+v", want); got != want {
			e.t.Errorf("a row of the log played again is\n%s\nwant\n%s", want, got)
		}
	}
}

// run returns the result of agent 0 and the changes of the members.
func (e *elasticProcesses) run() (*Result, []membership.Epoch) {
	e.t.Helper()
	n := e.c.Agents
	e.groups = make([]*agreement.Group, n)
	results, errs := make([]*Result, n), make([]error, n)
	last, kill := context.WithCancel(context.Background())
	e.died, e.death = context.WithCancel(context.Background())
	defer e.death()
	var all sync.WaitGroup
	address := make(chan string, 1)
	start := func(rank int, ctx context.Context, ready func(string)) {
		all.Go(func() {
			if results[rank], errs[rank] = e.one(ctx, rank, ready); errs[rank] != nil && e.crash > 0 && rank == 1 {
				<-e.died.Done()
				results[rank], errs[rank] = e.one(ctx, rank, ready)
			}
		})
	}
	start(0, context.Background(), func(a string) { address <- a })
	e.join = <-address
	for rank := 1; rank < e.survivors(); rank++ {
		start(rank, context.Background(), func(string) {})
	}
	var dying sync.WaitGroup
	for rank := e.survivors(); rank < n; rank++ {
		dying.Go(func() { _, _ = e.one(last, rank, func(string) {}) }) // it dies
	}
	if e.ahead > 0 {
		for e.at.Load() < 60 { // The last agent has left.
			time.Sleep(time.Millisecond)
		}
		kill()
		dying.Wait()
		e.life[n-1] = 1
		start(n-1, context.Background(), func(string) {})
	}
	all.Wait()
	kill()
	dying.Wait()
	for i, err := range errs {
		if i == 1 && e.resigns {
			if _, dropped := errors.AsType[*link.LifeError](err); !dropped && !errors.Is(err, ErrDropped) {
				e.t.Errorf("agent 1 ended with %v, want that it was dropped", err)
			}
		} else if err != nil {
			e.t.Fatalf("agent %d: %v", i, err)
		}
	}
	return results[0], e.groups[0].Status().Changes
}

// An agent dies in an all-reduce that has reached some of the others only. They all use what it sent,
// or none of them does, and its log repeats the run to the bit.
func TestDeathInAllReduce(t *testing.T) {
	const at = 24
	parts := 0
	afterOne := func(e *elasticProcesses, m dist.Message) bool {
		if m.T != at || m.To != 1 || m.Values[0].V.Len() > 1 {
			return false
		}
		for e.at.Load() <= at { // Its word to agent 0 is under way.
			time.Sleep(time.Millisecond)
		}
		return true
	}
	for _, c := range []struct {
		name, algo string
		dies       func(e *elasticProcesses, m dist.Message) bool
		counts     bool // The exchange of iteration at counts.
	}{
		{"some have its vector", "sgd", func(_ *elasticProcesses, m dist.Message) bool {
			return m.T == at && m.To == 1
		}, false},
		{"some have its sum", "sparta", func(_ *elasticProcesses, m dist.Message) bool {
			if m.T == at && m.To == 1 {
				parts++
			}
			return parts > 1
		}, false},
		{"one has its word", "sgd", afterOne, true},
		{"all have its vector", "local-sgd", func(_ *elasticProcesses, m dist.Message) bool {
			return m.T == at && m.Values[0].V.Len() == 1
		}, false},
		{"one has the word of all", "demo", afterOne, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			cfg := elastic(t, c.algo, "")
			written := cfg.Membership
			cfg.Membership, cfg.Agents = "elastic", 4
			e := &elasticProcesses{t: t, c: cfg, dies: c.dies}
			got, log := e.run()
			if len(log) != 1 || !slices.Equal(log[0].Left, []int{3}) {
				t.Fatalf("the members changed by %s", membership.Text(log))
			}
			first := log[0].At
			for _, idle := range log[0].Idle {
				first = idle.T
			}
			if first > at != c.counts {
				t.Errorf("agent 3 is left out from iteration %d on: %s", first, membership.Text(log))
			}
			e.replays(got, log, written)
		})
	}
}

// An agent dies in an all-reduce, which is then given up. Another agent is started again, from a
// checkpoint of an iteration before that, and sends the same messages in it.
func TestResumeBeforeAllReduceGivenUp(t *testing.T) {
	t.Parallel() // it mostly waits
	c := elastic(t, "local-sgd", "")
	written := c.Membership
	c.Membership, c.Agents, c.Checkpoint = "elastic", 4, 0
	parts := 0
	e := &elasticProcesses{t: t, c: c, crash: 34, saves: [2]int{20, 24}, dir: t.TempDir(),
		dies: func(_ *elasticProcesses, m dist.Message) bool {
			if m.T == 24 && m.To == 1 {
				parts++
			}
			return parts > 1 // It has sent its part, and no sum.
		}}
	got, log := e.run()
	if len(log) != 1 || log[0].IdleAt(1) != (membership.Exchange{T: 24}) {
		t.Errorf("the members changed by %s", membership.Text(log))
	}
	e.replays(got, log, written)
}

// An agent is started again, and its earlier process had used messages of an agent that now dies.
// The new process cannot get them, and the others have used what was computed with them. So the
// agent is dropped, and the log repeats the run to the bit.
func TestResumeBehind(t *testing.T) {
	const at = 34
	star := filepath.Join(t.TempDir(), "star")
	if err := os.WriteFile(star, []byte("3 0\n3 1\n3 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ name, algo, graph string }{
		{"others have its messages", "dsgd", "complete"},
		{"others have its messages", "fspda-sa", "complete"},
		{"the agent that dies has passed on what it had of them", "fspda-sa", "file(" + star + ")"},
	} {
		t.Run(x.algo+" "+x.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			c := elastic(t, x.algo, "")
			written := c.Membership
			c.Membership, c.Agents, c.Checkpoint, c.Graph, c.EvalPoints = "elastic", 4, 0, x.graph, 1
			e := &elasticProcesses{t: t, c: c, crash: at, saves: [2]int{20, 24}, resigns: true, dir: t.TempDir(),
				dies: func(_ *elasticProcesses, m dist.Message) bool { return m.T >= at }}
			got, log := e.run()
			if len(log) != 2 || !slices.Equal(log[0].Left, []int{3}) || !slices.Equal(log[1].Left, []int{1}) ||
				log[0].At < at {
				t.Fatalf("the members changed by %s", membership.Text(log))
			}
			e.replays(got, log, written)
		})
	}
}

// What members send that may leave is what is counted, up to a tenth. The all-reduce in the middle of
// which an agent dies is one of 80. FSPDA_LONG=1 takes all of these methods.
func TestElasticAllReduceInParts(t *testing.T) {
	for name, dies := range map[string]func(*elasticProcesses, dist.Message) bool{
		"sgd":           func(_ *elasticProcesses, m dist.Message) bool { return m.T >= 24 },
		"sparta-diloco": nil, "diloco": nil, "des-loc": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("FSPDA_LONG") == "" && strings.HasSuffix(name, "diloco") {
				return
			}
			t.Parallel() // it mostly waits
			c := elastic(t, name, "")
			written := c.Membership
			c.Membership, c.Agents, c.Hidden = "elastic", 6, Widths{50}
			if name == "des-loc" {
				c.Optimizer, c.Alpha = "adamw", 0.01
			}
			e := &elasticProcesses{t: t, c: c, dies: dies}
			got, log := e.run()
			last := got.Rows[len(got.Rows)-1]
			t.Logf("%d bytes were sent, and %d are counted", last.WireBytes, last.BitsSharedSeed/8)
			if counted := last.BitsSharedSeed / 8; float64(last.WireBytes) > 1.1*float64(counted) {
				t.Errorf("%d bytes were sent, and %d are counted: %.2f times as many", last.WireBytes, counted,
					float64(last.WireBytes)/float64(counted))
			}
			e.replays(got, log, written)
		})
	}
}

// An agent dies between the two exchanges of an iteration, or in the middle of one. The log says in
// which of them each of the others missed it first, and repeats the run to the bit.
func TestDeathBetweenExchanges(t *testing.T) {
	const at = 24
	for _, c := range []struct {
		name, algo string
		to         int                         // The agent to which it does not send any more.
		messages   int                         // The number of messages of the iteration that it sends to it.
		missed     map[int]membership.Exchange // The first exchange that others missed.
	}{
		{"in the first", "dsgt atc", 1, 0, map[int]membership.Exchange{1: {T: at}, 2: {T: at}}},
		{"between them", "docom", 0, 1, map[int]membership.Exchange{0: {T: at, K: 1}, 1: {T: at, K: 1},
			2: {T: at, K: 1}}},
		{"in the second", "dsgt atc", 1, 1, map[int]membership.Exchange{1: {T: at, K: 1}, 2: {T: at, K: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			cfg := elastic(t, c.algo, "")
			written := cfg.Membership
			cfg.Membership, cfg.Agents = "elastic", 4
			sent := 0
			e := &elasticProcesses{t: t, c: cfg, dies: func(_ *elasticProcesses, m dist.Message) bool {
				if m.T != at || m.To != c.to {
					return false
				}
				sent++
				return sent > c.messages
			}}
			got, log := e.run()
			if len(log) != 1 || !slices.Equal(log[0].Left, []int{3}) {
				t.Fatalf("the members changed by %s", membership.Text(log))
			}
			for i, want := range c.missed {
				if log[0].IdleAt(i) != want {
					t.Errorf("agent %d missed agent 3 not first in %v: %s", i, want, membership.Text(log))
				}
			}
			e.replays(got, log, written)
		})
	}
}

// A second agent dies while the members take over that the first one has left. They all take its part
// in that over, or none of them does, none of them leaves for want of a message, and the log repeats
// the run to the bit.
func TestDeathInTakeover(t *testing.T) {
	word := func(m dist.Message) bool { return m.Exact && len(m.Values) == 1 }
	for _, c := range []struct {
		name, algo string
		also       func(e *elasticProcesses, m dist.Message) bool
		counts     bool // The second agent is a member after the change.
	}{
		{"none has its message", "choco", func(_ *elasticProcesses, m dist.Message) bool { return m.Exact }, false},
		{"some have its message", "fspda-sa", func(_ *elasticProcesses, m dist.Message) bool {
			return m.Exact && m.To == 1
		}, false},
		{"none has its word", "sgd", func(_ *elasticProcesses, m dist.Message) bool { return word(m) }, false},
		{"one has the word of all", "beer", func(e *elasticProcesses, m dist.Message) bool {
			if !word(m) || m.To != 1 {
				return false
			}
			for e.at.Load() < int64(m.T) { // Its word to agent 0 is under way.
				time.Sleep(time.Millisecond)
			}
			return true
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			cfg := elastic(t, c.algo, "")
			written := cfg.Membership
			cfg.Membership, cfg.Agents = "elastic", 5
			e := &elasticProcesses{t: t, c: cfg, also: c.also,
				dies: func(_ *elasticProcesses, m dist.Message) bool { return m.T >= 24 }}
			got, log := e.run()
			if len(log) != 2 || !slices.Equal(log[0].Left, []int{4}) || !slices.Equal(log[1].Left, []int{3}) {
				t.Fatalf("the members changed by %s", membership.Text(log))
			}
			if after := log[1].At > log[0].At; after != c.counts {
				t.Errorf("agent 3 takes part after the change: %v, want %v: %s", after, c.counts, membership.Text(log))
			}
			e.replays(got, log, written)
		})
	}
}

// The agent whose process evaluates the run dies while the others take over that a new agent joins.
// They all stop at one iteration, for another process to evaluate the run, and each has a checkpoint
// from which it resumes there, the new agent too.
func TestWriterDiesInJoin(t *testing.T) {
	for _, c := range []struct {
		name   string
		dies   func(m dist.Message) bool
		counts bool // It is a member after the change.
	}{
		{"the new agent has nothing", func(m dist.Message) bool { return m.Exact && m.To == 3 }, false},
		{"the new agent lacks its word", func(m dist.Message) bool {
			return m.Exact && m.To == 3 && len(m.Values) == 1
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			cfg := elastic(t, "fspda-sa", "")
			cfg.Membership, cfg.Agents, cfg.Iterations = "elastic", 4, 4000
			cfg.GradientTime = 0.01
			e := &elasticProcesses{t: t, c: cfg, first: c.dies, dir: t.TempDir(), groups: make([]*agreement.Group, 4),
				death: func() {}, dies: func(_ *elasticProcesses, m dist.Message) bool { return m.T >= 24 }}
			dead, kill := context.WithCancel(t.Context())
			var living, dying sync.WaitGroup
			live := func(rank int) {
				living.Go(func() {
					if _, err := e.one(t.Context(), rank, func(string) {}); !errors.Is(err, ErrMoved) {
						t.Errorf("agent %d ended with %v, want %v", rank, err, ErrMoved)
					}
				})
			}
			address := make(chan string, 1)
			dying.Go(func() { _, _ = e.one(dead, 0, func(a string) { address <- a }) })
			e.join = <-address
			early, gone := context.WithCancel(t.Context())
			var last sync.WaitGroup
			last.Go(func() { _, _ = e.one(early, 3, func(string) {}) })
			live(1)
			live(2)
			for e.at.Load() < 60 { // Agent 3 has left.
				time.Sleep(10 * time.Millisecond)
			}
			gone()
			last.Wait()
			e.life[3] = 1
			live(3)
			living.Wait()
			kill()
			dying.Wait()
			log := e.groups[1].Status().Changes
			if len(log) != 3 || !slices.Equal(log[1].Joined, []int{3}) || !slices.Equal(log[2].Left, []int{0}) ||
				log[2].At > log[1].At != c.counts {
				t.Fatalf("the members changed by %s", membership.Text(log))
			}
			for rank := 1; rank < 4; rank++ {
				at := filepath.Join(e.folder(e.life[rank]), "agents", fmt.Sprintf("%03d", rank), "checkpoints",
					fmt.Sprintf("iter-%09d", log[2].At))
				if _, err := os.Stat(at); err != nil {
					t.Errorf("agent %d has no checkpoint of iteration %d: %v", rank, log[2].At, err)
				}
			}
		})
	}
}

// A new agent gets the state of its donor while the others go on, and is a member later. The log
// repeats the run to the bit.
func TestNewcomerAhead(t *testing.T) {
	names := []string{"dsgd", "fspda-sa"}
	if os.Getenv("FSPDA_LONG") != "" {
		names = append(names, "fspda-storm", "dsgt", "choco", "led", "docom", "dsgt atc", "sgp")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			c := elastic(t, name, "")
			written := c.Membership
			c.Membership, c.Agents, c.Iterations, c.EvalPoints, c.GradientTime = "elastic", 4, 1500, 6, 0.002
			e := &elasticProcesses{t: t, c: c, ahead: 1,
				dies: func(_ *elasticProcesses, m dist.Message) bool { return m.T >= 24 }}
			got, log := e.run()
			if len(log) != 2 || !slices.Equal(log[1].Joined, []int{3}) || log[1].Donated == 0 ||
				log[1].Donated >= log[1].At {
				t.Fatalf("the members changed by %s", membership.Text(log))
			}
			e.replays(got, log, written)
		})
	}
}

// What members pass on at a change is not rounded to the format of their messages.
func TestChangeIsExact(t *testing.T) {
	t.Parallel() // it mostly waits
	c := elastic(t, "fspda-sa", "")
	written := c.Membership
	c.Membership, c.Agents, c.Wire = "elastic", 4, "bf16"
	e := &elasticProcesses{t: t, c: c, dies: func(_ *elasticProcesses, m dist.Message) bool { return m.T >= 24 }}
	got, log := e.run()
	e.replays(got, log, written)
}

// votes is an Agreement that keeps which agents it is asked to drop.
type votes struct {
	membership.Agreement
	drops chan int
}

func (v votes) Drop(_ context.Context, agent int) error {
	v.drops <- agent
	return nil
}

// retiring are Slots without streams, which keep the lives of slots that have retired.
type retiring struct {
	Slots
	lives map[int]int
}

func (r retiring) Retire(agent, life int) { r.lives[agent] = life }
func (retiring) Admit(int, int, int)      {}

// A process that begins when others have left awaits no link to them. Their slots have a next life.
func TestBeginsAfterOthersLeft(t *testing.T) {
	s, _ := resolve(t, small())
	s.Members = membership.Elastic(5)
	g := &manyProcesses{r: &run{setup: s, log: zap.NewNop(), progress: newProgress([]int{4}, 9, 60)},
		p: &Process{Rank: 4}, Node: process.New(process.Options{Rank: 4, Agents: 5, Store: process.NoStore{},
			Schedule: s, Log: zap.NewNop()})}
	slots := retiring{lives: map[int]int{}}
	m := &elasticMembers{manyProcesses: g, Elastic: &Elastic{Slots: slots}, first: 9,
		Departures: membership.Separate(4, s.MemberRules())}
	m.Change(membership.View{Lives: []int{1, 1, 0, 0, 1}, Epochs: []membership.Epoch{
		{Epoch: 1, At: 5, Left: []int{0}}, {Epoch: 2, At: 5, Left: []int{1}}, {Epoch: 3, At: 6, Left: []int{4}},
		{Epoch: 4, At: 7, Joined: []int{1}}, {Epoch: 5, At: 9, Joined: []int{4}}}})
	if len(slots.lives) != 1 || slots.lives[0] != 1 || m.resigned {
		t.Errorf("the slots %v have retired, want that of agent 0 with life 1; resigned: %v", slots.lives, m.resigned)
	}
}

// An agent cannot go on that resumes before two changes of one iteration, or whose earlier process has
// used messages of an agent that leaves and are lost with it. Its process goes on to vote until the
// others have dropped the agent, and enters no further iteration.
func TestResign(t *testing.T) {
	for name, happens := range map[string]func(m *elasticMembers){
		"two changes": func(m *elasticMembers) {
			m.Change(membership.View{Epochs: []membership.Epoch{{Epoch: 1, At: 9, Left: []int{0}},
				{Epoch: 2, At: 9, Joined: []int{0}}}})
		},
		"lost messages": func(m *elasticMembers) {
			m.Leave(0, 1) // Its note is not in the log, since others know that its earlier process went further.
			m.Change(membership.View{Epochs: []membership.Epoch{{Epoch: 1, At: 1, Left: []int{1}},
				{Epoch: 2, At: 9, Left: []int{0}}}})
			if idle := m.Leave(2, 1); idle.T < 60 {
				t.Errorf("the messages of an agent that leaves later are said to be used up to iteration %v", idle)
			}
		},
	} {
		s, _ := resolve(t, small())
		s.Members = membership.Elastic(5)
		ctx, fail := context.WithCancelCause(t.Context())
		defer fail(nil)
		v := votes{drops: make(chan int, 2)}
		g := &manyProcesses{r: &run{setup: s, log: zap.NewNop(), progress: newProgress([]int{4}, 7, 60)},
			p: &Process{Rank: 4}, Node: process.New(process.Options{Rank: 4, Agents: 5, Store: process.NoStore{},
				Schedule: s, Log: zap.NewNop()})}
		slots := retiring{lives: map[int]int{}}
		m := &elasticMembers{manyProcesses: g, Elastic: &Elastic{Agreement: v, Slots: slots}, first: 7, seen: 1,
			known: 2, Departures: membership.Separate(4, membership.Rules{Agents: 5, Exchanges: 1}), ctx: ctx,
			ended: fail}
		happens(m)
		happens(m)
		select {
		case agent := <-v.drops:
			if agent != 4 || len(v.drops) != 0 {
				t.Errorf("%s: the members are asked to drop agent %d, %d times", name, agent, 1+len(v.drops))
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: the run ended with %v", name, context.Cause(ctx))
		}
		if shut := m.r.progress.shut; shut > 9 {
			t.Errorf("%s: the agent may go on to iteration %d", name, shut)
		}
		m.Dropped()
		if !errors.Is(context.Cause(ctx), ErrDropped) {
			t.Errorf("%s: the run ends with %v", name, context.Cause(ctx))
		}
	}
}
