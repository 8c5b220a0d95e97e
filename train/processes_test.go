package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/dist"
	"fspda/dist/discover/nats"
	"fspda/dist/link"
	"fspda/train/process"
	"fspda/train/runfolder"
)

// processes runs a configuration with one Run for each agent, over links, as if each were a
// process.
type processes struct {
	t    *testing.T
	c    Config
	dir  string // "": nothing is written
	name string
	join string              // of the coordinator
	step func(iteration int) // of agent 0; may be nil

	timeout time.Duration
	abandon func(error)                      // of agent 0; may be nil
	distort func(dist.Message)               // changes messages before they are sent; may be nil
	network func(*link.Node) process.Network // of agent 0; may be nil
	results []*Result                        // set by run
	first   time.Duration
	listen  string         // of the coordinator; "": any port
	disk    runfolder.Disk // of the coordinator's folder; nil: the operating system's
}

// one runs one agent to its end. It calls ready with the address of its server.
func (w *processes) one(ctx context.Context, rank int, ready func(address string)) (*Result, error) {
	s, m := resolve(w.t, w.c)
	dev := cpu.New()
	var id []link.Field
	for _, f := range s.Identity(m.Describe().Sizes()) {
		id = append(id, link.Field{Name: f[0], Value: f[1]})
	}
	by := nats.Options{Run: w.name, Self: rank, Agents: w.c.Agents, Server: nats.Server{Listen: "127.0.0.1:0"}}
	if rank != process.Coordinator {
		by.Server.Join = []string{w.join}
	} else if w.listen != "" {
		by.Server.Listen = w.listen
	}
	found, err := nats.Open(by)
	if err != nil {
		return nil, err
	}
	n, err := link.Open(link.Options{Run: w.name, Self: rank, Agents: w.c.Agents, Identity: id, Pool: dist.NewPool(dev),
		Dim: s.Dim, Codec: s.Codec(), Wire: s.WireFormat(), Durable: w.dir != "", Discovery: found,
		Listen: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	defer n.Close()
	ready(found.Address())
	opt := Options{Device: dev, Model: m, Process: &Process{Rank: rank, Network: n, Timeout: w.timeout,
		FirstTimeout: w.first}, OnStep: w.step}
	if rank == 0 {
		opt.Process.Abandon = w.abandon
		if w.network != nil {
			opt.Process.Network = w.network(n)
		}
	}
	if w.distort != nil {
		opt.Process.Network = distorting{n, w.distort}
	}
	if w.dir != "" {
		if opt.Process.Store, err = runfolder.OpenAgentStore(w.dir, rank); err != nil {
			return nil, err
		}
		defer opt.Process.Store.Close()
		if rank == process.Coordinator {
			_, err := ReadConfig(w.dir)
			if opt.Folder, err = OpenFolder(w.dir, s, err == nil); err != nil {
				return nil, err
			}
			if w.disk != nil {
				opt.Folder.Disk = w.disk
			}
		}
	}
	return Run(ctx, s, opt)
}

// distorting is a Network of an agent that sends other messages than it should.
type distorting struct {
	*link.Node
	distort func(dist.Message)
}

func (n distorting) Send(ctx context.Context, m dist.Message) error {
	n.distort(m)
	return n.Node.Send(ctx, m)
}

// run runs all agents and returns the result of the coordinator. stop, which may be nil, returns
// the context of an agent.
func (w *processes) run(stop func(rank int) context.Context) *Result {
	w.t.Helper()
	failed, fail := context.WithCancel(context.Background())
	defer fail()
	ctx := func(rank int) context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		if stop != nil {
			ctx, cancel = context.WithCancel(stop(rank))
		}
		context.AfterFunc(failed, cancel) // the others must not wait for an agent that has failed
		return ctx
	}
	results := make([]*Result, w.c.Agents)
	var wg sync.WaitGroup
	address := make(chan string, 1)
	run := func(rank int, ready func(string)) {
		wg.Go(func() {
			r, err := w.one(ctx(rank), rank, ready)
			if err != nil {
				w.t.Errorf("agent %d: %v", rank, err)
				fail()
			}
			results[rank] = r
		})
	}
	run(process.Coordinator, func(a string) { address <- a })
	w.join = <-address
	for rank := 1; rank < w.c.Agents; rank++ {
		run(rank, func(string) {})
	}
	wg.Wait()
	w.results = results
	if w.t.Failed() {
		w.t.FailNow()
	}
	for i, r := range results {
		if r.Status != results[0].Status {
			w.t.Errorf("agent %d ended as %s, agent 0 as %s", i, r.Status, results[0].Status)
		}
	}
	return together(results)
}

// together is the result of the coordinator with the models of all agents, of which each process has
// its own.
func together(results []*Result) *Result {
	all := *results[0]
	if all.Models = slices.Clone(all.Models); all.Models != nil {
		for i, r := range results {
			if i < len(r.Models) { // In real time agent 0 alone has models, of all agents.
				all.Models[i] = r.Models[i]
			}
		}
	}
	return &all
}

// withoutWireBytes is a trace without the bytes that were sent, which differ between one process
// and many. Of an exchange under way, which is counted, only a half may be sent.
func withoutWireBytes(t *testing.T, r *Result) string {
	t.Helper()
	c := *r
	c.Rows = append([]Row(nil), r.Rows...)
	for i := range c.Rows {
		if i > 0 && 2*c.Rows[i].WireBytes < c.Rows[i].BitsSharedSeed/8 {
			t.Errorf("%d bytes for %d bits", c.Rows[i].WireBytes, c.Rows[i].BitsSharedSeed)
		}
		c.Rows[i].WireBytes = 0
	}
	return trace(t, &c)
}

// Many processes compute the same rows and models as one, to the bit. FSPDA_LONG=1 takes all of these
// methods, else one for each kind of exchange.
func TestProcessesEqualOneProcess(t *testing.T) {
	kinds := []string{"fspda-sa", "fspda-storm", "dsgd", "sgd", "diloco, int4", "demo", "docom", "copies",
		"choco randk", "swarm", "sgp", "relaysgd", "powergossip", "fspda-async"}
	for name, edit := range map[string]func(*Config){
		"fspda-sa":    func(*Config) {},
		"fspda-storm": func(c *Config) { c.Algo, c.Edges = "fspda-storm", "bernoulli(0.4)" },
		"dsgd":        func(c *Config) { c.Algo, c.Edges, c.Momentum = "dsgd", "matching", 0.5 },
		"sgd":         func(c *Config) { c.Algo = "sgd" },
		"diloco": func(c *Config) {
			c.Algo, c.LocalSteps, c.Optimizer, c.Alpha = "diloco", 5, "adamw", 0.01
		},
		"noloco": func(c *Config) { c.Algo, c.LocalSteps, c.Graph = "noloco", 5, "complete" },
		"gasloc": func(c *Config) { c.Algo, c.LocalSteps, c.Graph = "gasloc", 2, "base(1)" },
		"sparta": func(c *Config) { c.Algo, c.Optimizer, c.Alpha = "sparta", "adamw", 0.01 },
		"average": func(c *Config) {
			c.Algo, c.LocalSteps, c.Momentum, c.Average = "local-sgd", 5, 0.5, "ema(0.9)"
		},
		"des-loc": func(c *Config) {
			c.Algo, c.LocalSteps, c.Alpha = "des-loc", 5, 0.01
			c.Params = Params{"moment_rounds": 2, "square_rounds": 3}
		},
		"muloco":       func(c *Config) { c.Algo, c.LocalSteps, c.Alpha, c.Hidden = "muloco", 5, 0.01, Widths{8} },
		"sparseloco":   func(c *Config) { c.Algo, c.LocalSteps, c.Params = "sparseloco", 5, Params{"side": 8, "k": 4} },
		"diloco, int4": quantized("diloco", "int4"),
		"diloco, int2": quantized("diloco", "int2"),
		"demo":         func(c *Config) { c.Algo, c.Alpha, c.Compress = "demo", 0.01, "dct(8,4)" },
		"adamw": func(c *Config) {
			c.Optimizer, c.Alpha, c.ClipNorm, c.WeightDecay, c.DecayTensors = "adamw", 0.01, 0.3, 0.01, "weights"
		},
		"copies":      func(c *Config) { c.Algo, c.Compress, c.Edges = "fspda-sa-ef", "topk", "full" },
		"ticopd":      func(c *Config) { c.Algo, c.Compress = "ticopd", "sign" },
		"docom":       func(c *Config) { c.Algo, c.Compress, c.Graph = "docom", "topk", "complete" },
		"copies qsgd": func(c *Config) { c.Algo, c.Compress = "fspda-sa-ef", "qsgd-scaled(15)" },
		"choco topk":  func(c *Config) { c.Algo, c.Compress = "choco", "topk" },
		"choco randk": func(c *Config) { c.Algo, c.Compress, c.Edges = "choco", "randk", "broadcast-one" },
		"choco qsgd":  func(c *Config) { c.Algo, c.Compress = "choco", "qsgd-scaled(15)" },
		"swarm":       func(c *Config) { c.Algo, c.Compress = "swarm", "lattice(0.001,1024)" },
		"sgp":         func(c *Config) { c.Algo, c.Edges = "sgp", "push(1)" },
		"relaysgd":    func(c *Config) { c.Algo, c.Graph = "relaysgd", "path" },
		"sparta-diloco": func(c *Config) {
			c.Algo, c.Optimizer, c.Alpha, c.Mask, c.Params = "sparta-diloco", "adamw", 0.01, "cycle",
				Params{"outer_steps": 4}
		},
		"powergossip": func(c *Config) { c.Algo, c.Edges = "powergossip", "full" },
		"beer":        func(c *Config) { c.Algo, c.Compress, c.Graph = "beer", "topk", "complete" },
		"dsgt":        func(c *Config) { c.Algo, c.Params = "dsgt", Params{"form": "atc"} },
		"fspda-async": func(c *Config) { c.Algo, c.Slowness = "fspda-async", "linear(3)" },
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("FSPDA_LONG") == "" && !slices.Contains(kinds, name) {
				return
			}
			t.Parallel()
			c := small()
			c.Agents, c.Iterations, c.EvalPoints = 4, 40, 2
			edit(&c)
			want := withoutWireBytes(t, play(t, c, Options{}))
			w := &processes{t: t, c: c, name: "one"}
			if got := withoutWireBytes(t, w.run(nil)); got != want {
				t.Error("the rows or models differ")
			}
		})
	}
}

// A divergence ends all processes, with the rows and the error of one process.
func TestProcessesDiverge(t *testing.T) {
	c := small()
	c.Agents, c.Alpha, c.Activation, c.EvalPoints = 4, 1e6, "relu", 30
	one := play(t, c, Options{})
	many := (&processes{t: t, c: c, name: "lost"}).run(nil)
	if many.Status != Diverged || many.Diverged.Error() != one.Diverged.Error() {
		t.Fatalf("%s, %v; want %v", many.Status, many.Diverged, one.Diverged)
	}
	if withoutWireBytes(t, many) != withoutWireBytes(t, one) {
		t.Error("the rows differ")
	}
}

// Processes that are stopped and started again several times compute the rows of one process that
// was never stopped. The run folder is the same, too. FSPDA_LONG=1 also does it with more messages that
// travel at a stop.
func TestProcessesResume(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"edges": func(*Config) {},
		"late": func(c *Config) {
			c.Algo, c.LocalSteps, c.Density, c.Params = "streaming-diloco", 8, 0.25, Params{"delay": 7}
		},
		"late codes": func(c *Config) {
			c.Algo, c.LocalSteps, c.Density = "streaming-diloco", 8, 0.25
			c.Params = Params{"delay": 6, "quantize": "int4", "block": 64}
		},
		"eager": func(c *Config) {
			c.Algo, c.LocalSteps, c.Params = "diloco", 6, Params{"outer": "eager", "outer_lr": 0.4}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("FSPDA_LONG") == "" && (name == "late" || name == "eager") {
				return
			}
			t.Parallel()
			c := small()
			c.Agents, c.Iterations, c.EvalPoints, c.Checkpoint = 4, 240, 10, 0.05
			edit(&c)
			resumeProcesses(t, c)
		})
	}
}

func resumeProcesses(t *testing.T, c Config) {
	t.Helper()
	want, err := inFolder(t, context.Background(), c, filepath.Join(t.TempDir(), "one"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &processes{t: t, c: c, name: "again", dir: filepath.Join(t.TempDir(), "many")}
	var got *Result
	stops := 0
	for try := 0; ; try++ {
		ctx, cancel := context.WithCancel(context.Background())
		w.step = func(iteration int) {
			if try < 2 && iteration > 80*(try+1) {
				cancel()
			}
		}
		got = w.run(func(int) context.Context { return ctx })
		cancel()
		if got.Status == Finished {
			break
		}
		stops++
	}
	if stops == 0 {
		t.Error("the run ended before it could be stopped")
	}
	if withoutWireBytes(t, got) != withoutWireBytes(t, want) {
		t.Error("the rows or models differ")
	}
	checkManifest(t, w.dir, got)
}

// The last checkpoint of many processes holds all that a longer run in one process needs: the
// memory of edges, of agents with different numbers of them, and the virtual times.
func TestProcessesLengthen(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"relaysgd":    func(c *Config) { c.Algo, c.Mask, c.Density = "relaysgd", "auto", Default().Density },
		"powergossip": func(c *Config) { c.Algo, c.Mask, c.Density = "powergossip", "auto", Default().Density },
		"sketch":      func(c *Config) { c.Algo = "fspda-sa-sketch" },
		"copies":      func(c *Config) { c.Algo, c.Mask, c.Density = "fspda-sa-ef", "auto", Default().Density },
		"links":       func(c *Config) { c.Links = withLinks(t, wan) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := small()
			c.Agents, c.Graph, c.Iterations, c.EvalPoints = 4, "path", 41, 1
			edit(&c)
			long := c
			long.Iterations, long.EvalPoints = 82, 2
			want := play(t, long, Options{})
			w := &processes{t: t, c: c, name: "long", dir: filepath.Join(t.TempDir(), "many")}
			w.run(nil)
			old := (&Result{}).config(t, w.dir)
			more := old
			more.Iterations = long.Iterations
			if err := more.Lengthen(old); err != nil {
				t.Fatal(err)
			}
			got, err := inFolder(t, context.Background(), more, w.dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got.First != c.Iterations || withoutWireBytes(t, got) != withoutWireBytes(t, want) {
				t.Errorf("continued from %d, not as a run of that length in one process", got.First)
			}
		})
	}
}

// A finished run that is being lengthened has its longer configuration before its summary is
// removed. If the process is killed between, the run goes on to its new end.
func TestProcessesLengthenAfterKill(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints = 3, 40, 1
	w := &processes{t: t, c: c, name: "more", dir: filepath.Join(t.TempDir(), "many")}
	w.run(nil)
	old := (&Result{}).config(t, w.dir)
	w.c = old
	w.c.Iterations = 80
	if err := w.c.Lengthen(old); err != nil {
		t.Fatal(err)
	}
	want := withoutWireBytes(t, play(t, w.c, Options{}))
	summary := filepath.Join(w.dir, "summary.json")
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := resolve(t, w.c)
	f, err := OpenFolder(w.dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), os.WriteFile(summary, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	if got := w.run(nil); got.Iteration != 80 || withoutWireBytes(t, got) != want {
		t.Errorf("it ended at %d, not as a run of that length", got.Iteration)
	}
}

// A run that was stopped in many processes is not started over in one, nor the reverse: each is
// refused, its rows stay, and it can be resumed as it was begun.
func TestProcessesResumeAsBegun(t *testing.T) {
	c := small()
	c.Agents, c.Iterations, c.EvalPoints = 3, 600, 30
	w := &processes{t: t, c: c, name: "begun", dir: filepath.Join(t.TempDir(), "many")}
	ctx, stop := context.WithCancel(context.Background())
	w.step = func(iteration int) {
		if iteration == 100 {
			stop()
		}
	}
	if r := w.run(func(int) context.Context { return ctx }); r.Status != Stopped {
		t.Fatalf("it ended as %s", r.Status)
	}
	before := metrics(t, w.dir)
	if _, err := inFolder(t, context.Background(), c, w.dir, Options{}); err == nil ||
		!strings.Contains(err.Error(), "fspda up --resume") || metrics(t, w.dir) != before {
		t.Errorf("in one process: %v", err)
	}
	many := *w
	w.dir, w.step = runFolder(t), nil
	stopAt(t, c, w.dir, 100)
	before = metrics(t, w.dir)
	if _, err := w.one(context.Background(), process.Coordinator, func(string) {}); err == nil ||
		!strings.Contains(err.Error(), "fspda train --resume") || metrics(t, w.dir) != before {
		t.Errorf("in many processes: %v", err)
	}
	one, err := inFolder(t, context.Background(), c, w.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	many.step = nil
	if got := many.run(nil); got.First == 0 || withoutWireBytes(t, got) != withoutWireBytes(t, one) {
		t.Errorf("resumed from %d, and the rows or models differ", got.First)
	}
}

// checkManifest checks that the run folder holds the last checkpoint of all agents.
func checkManifest(t *testing.T, dir string, r *Result) {
	t.Helper()
	s, _ := resolve(t, r.config(t, dir))
	f, err := OpenFolder(dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ck, _, err := f.OpenCheckpoint(s)
	if err != nil || ck == nil || ck.Iteration != r.Iteration {
		t.Fatalf("checkpoint %v, %v", ck, err)
	}
	ck.Close()
}

func (res *Result) config(t *testing.T, dir string) Config {
	c, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A process that waits at an evaluation for an agent that never comes stops when it is told to, even
// if the others have stopped and will never tell it that the run has ended.
func TestProcessStopsInEvaluation(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Graph, c.Edges, c.Iterations, c.EvalPoints, c.Checkpoint = 3, "complete", "trace("+emptyTrace(
		t)+")", 20, 1, 0.05
	c.Eta = AutoFloat{V: 0.001}
	w := &processes{t: t, c: c, name: "late"}
	stopped, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	address := make(chan string, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	silent, end := context.WithCancel(context.Background())
	defer end()
	wg.Go(func() { // the coordinator waits for agent 2, which never comes
		_, _ = w.one(silent, process.Coordinator, func(a string) { address <- a })
	})
	w.join = <-address
	done := make(chan *Result, 1)
	go func() {
		r, err := w.one(stopped, 1, func(string) {})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	select {
	case r := <-done:
		if r != nil && r.Status != Stopped {
			t.Errorf("it ended as %s", r.Status)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it did not stop")
	}
}

// emptyTrace is a file of edges that are never active in the run.
func emptyTrace(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "edges.txt")
	if err := os.WriteFile(name, []byte("1000 0 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Processes that are told to stop, not quite at once, all leave a checkpoint of one iteration, and
// resume from it to the rows of a run that was never stopped. FSPDA_LONG=1 stops 100 times.
func TestProcessesStopTogether(t *testing.T) {
	stops := 5
	if os.Getenv("FSPDA_LONG") != "" {
		stops = 100
	}
	c := small()
	c.Agents, c.Graph, c.Eta = 6, "ring", AutoFloat{V: 0.001}
	c.Iterations, c.EvalPoints, c.Checkpoint = 40*stops, 2*stops, 0
	want := withoutWireBytes(t, play(t, c, Options{}))
	w := &processes{t: t, c: c, name: "together", dir: filepath.Join(t.TempDir(), "many")}
	var got *Result
	for try := 1; ; try++ {
		told := make([]context.CancelFunc, c.Agents)
		ctx := make([]context.Context, c.Agents)
		for i := range ctx {
			ctx[i], told[i] = context.WithCancel(context.Background())
		}
		w.step = func(iteration int) {
			if iteration != 30*try || try > stops {
				return
			}
			for i := range told { // in another order each time
				time.AfterFunc(time.Duration((i*try)%7)*time.Millisecond, told[i])
			}
		}
		got = w.run(func(rank int) context.Context { return ctx[rank] })
		for _, cancel := range told {
			cancel()
		}
		if got.Status == Finished {
			break
		}
		if try > stops {
			t.Fatalf("stopped %d times", try)
		}
		s, _ := resolve(t, c)
		for i := range c.Agents {
			store, err := runfolder.OpenAgentStore(w.dir, i)
			if err != nil {
				t.Fatal(err)
			}
			ck, _, _, err := store.Newest(s, i, nil)
			if err != nil || ck == nil || ck.Iteration != got.Iteration || got.Iteration < 30*try {
				t.Fatalf("stop %d at iteration %d: agent %d has %+v, %v", try, got.Iteration, i, ck, err)
			}
			ck.Close()
			_ = store.Close()
		}
	}
	if withoutWireBytes(t, got) != want {
		t.Error("the rows or models differ")
	}
}

// Without the coordinator, or without all others, each process that is told to stop stops alone.
// The others wait for it and stop when they are told to.
func TestProcessesStopAlone(t *testing.T) {
	for _, first := range [][]int{{1}, {0, 2}} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			stopAlone(t, first)
		})
	}
}

// stopAlone tells some of three processes to stop, and all of them six seconds later.
func stopAlone(t *testing.T, first []int) {
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Checkpoint = 3, 100_000, 1, 0
	w := &processes{t: t, c: c, name: "alone", dir: filepath.Join(t.TempDir(), "many")}
	var told [3]context.CancelFunc
	var ctx [3]context.Context
	for i := range ctx {
		ctx[i], told[i] = context.WithCancel(context.Background())
	}
	w.step = func(iteration int) {
		if iteration == 50 {
			for _, i := range first {
				told[i]()
			}
			time.AfterFunc(6*time.Second, func() {
				for _, tell := range told {
					tell()
				}
			})
		}
	}
	if got := w.run(func(rank int) context.Context { return ctx[rank] }); got.Status != Stopped {
		t.Errorf("%v stopped first: %s", first, got.Status)
	}
}

// The newest checkpoint of an agent is damaged, deleted, or without its streams: the agent
// continues from the one before, and the results are the same.
func TestProcessesSurviveDamage(t *testing.T) {
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Checkpoint = 3, 400, 4, 0.02
	want := withoutWireBytes(t, play(t, c, Options{}))
	w := &processes{t: t, c: c, name: "damage", dir: filepath.Join(t.TempDir(), "many")}
	var got *Result
	harms := map[int]func(dir string) error{
		0: os.RemoveAll,
		1: func(dir string) error { return os.Truncate(filepath.Join(dir, "agent.safetensors"), 100) },
		2: func(dir string) error { return os.Remove(filepath.Join(dir, "lines.bin")) },
	}
	for try := 0; ; try++ {
		ctx, cancel := context.WithCancel(context.Background())
		w.step = func(iteration int) {
			time.Sleep(time.Millisecond) // several checkpoints
			if try < len(harms) && iteration > 100*(try+1) {
				cancel()
			}
		}
		got = w.run(func(int) context.Context { return ctx })
		cancel()
		if got.Status == Finished {
			break
		}
		all, err := filepath.Glob(filepath.Join(w.dir, "agents", fmt.Sprintf("%03d", try), "checkpoints", "iter-*"))
		if err != nil || len(all) < 2 {
			t.Fatalf("agent %d has the checkpoints %v, %v", try, all, err)
		}
		if err := harms[try](all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if withoutWireBytes(t, got) != want {
		t.Error("the rows or models differ")
	}
}

// noSummary is a disk that is full when summary.json is written.
type noSummary struct{ runfolder.Disk }

func (d noSummary) WriteFile(path string, write func(io.Writer) error) (int64, error) {
	if strings.Contains(path, "summary.json") {
		return 0, &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	}
	return d.Disk.WriteFile(path, write)
}

// The disk of the coordinator is full when it writes the results: the others wait for it. Started
// again it repeats the end of the run. When all are started once more, it tells them that the run
// has finished.
func TestProcessesEndAgain(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Checkpoint = 3, 40, 2, 0
	want := withoutWireBytes(t, play(t, c, Options{}))
	w := &processes{t: t, c: c, name: "end", dir: filepath.Join(t.TempDir(), "many"),
		disk: noSummary{runfolder.OSDisk{}}}
	type end struct {
		rank int
		*Result
	}
	others := make(chan end, c.Agents)
	_, err := w.one(t.Context(), process.Coordinator, func(address string) {
		w.join, w.listen = address, address
		for rank := 1; rank < c.Agents; rank++ {
			go func() {
				r, err := w.one(t.Context(), rank, func(string) {})
				if err != nil {
					t.Error(err)
				}
				others <- end{rank, r}
			}()
		}
	})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "summary.json") {
		t.Errorf("error %v", err)
	}
	if len(others) > 0 {
		t.Error("an agent has ended before the results were written")
	}
	w.disk = nil
	got, err := w.one(t.Context(), process.Coordinator, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]*Result, c.Agents)
	ends[0] = got
	for range c.Agents - 1 {
		r := <-others
		if r.Result == nil || r.Status != Finished {
			t.Fatalf("an agent has ended with %+v", r.Result)
		}
		ends[r.rank] = r.Result
	}
	if withoutWireBytes(t, together(ends)) != want {
		t.Error("the rows or models differ")
	}
	again := w.run(nil)
	if again.Status != Finished || len(again.Rows) != len(got.Rows) || again.Models != nil ||
		again.Summary.Iterations != c.Iterations {
		t.Errorf("it has ended again with %+v", again)
	}
}
