package train

import (
	"context"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"fspda/internal/rng"
	"fspda/internal/testing/disttest"
	"fspda/train/algo"
)

// line is one of the table of all algorithms: a configuration, and the bits of its iterations in
// the three accountings.
type line struct {
	name string
	edit func(c *Config)
	// vectors that cross an active edge each way; 0: an all-reduce
	vectors uint64
	late    bool // of these only one in the first iteration
	silent  bool // nothing in the first iteration
	codec   bool // what it sends goes through a codec, or at times of its own: TestCodecBits counts it
	loss    float64
}

// lines has all algorithms of the module, and those of their forms that exchange or remember
// something else. loss is what the mean model's objective must come to after 120 iterations,
// whether edges fail or not; it is 2.37 at the start.
var lines = []line{
	{name: "fspda-sa", vectors: 1, loss: 2.25},
	{name: "fspda-sa momentum", edit: func(c *Config) { c.Algo, c.Momentum, c.Alpha = "fspda-sa", 0.9, 0.05 },
		vectors: 1, loss: 2.2},
	{name: "fspda-sa stale", edit: func(c *Config) {
		c.Algo, c.Dual, c.Edges, c.Graph = "fspda-sa", "stale-neighbour", "matching", "complete"
	}, vectors: 1, loss: 2.15},
	{name: "fspda-sa periodic", edit: func(c *Config) { c.Algo, c.Edges, c.Gamma = "fspda-sa", "periodic(5)", 0.3 },
		vectors: 1, loss: 2.25},
	{name: "fspda-storm", vectors: 2, late: true, loss: 2.25},
	{name: "fspda-storm two momenta", edit: func(c *Config) {
		c.Algo, c.AX, c.ALambda, c.StormStart, c.StormLambda = "fspda-storm", 0.2, 0.05, "zero", "lagged"
		c.Schedule, c.Warmup, c.Mask = "cosine", 1, "randk-per-layer"
	}, vectors: 2, silent: true, loss: 2.25},
	{name: "dsgd", vectors: 1, loss: 2.25},
	{name: "dsgd base", edit: func(c *Config) { c.Algo, c.Graph, c.Order, c.Density = "dsgd", "base(1)", "atc", 1 },
		vectors: 1, loss: 1.9},
	{name: "dmsgd", edit: func(c *Config) { c.Algo, c.Momentum, c.Alpha = "dmsgd", 0.5, 0.1 }, vectors: 2, loss: 2.25},
	{name: "qg-dsgdm", edit: func(c *Config) { c.Algo, c.Momentum, c.Alpha = "qg-dsgdm", 0.5, 0.1 }, vectors: 1,
		loss: 2.25},
	{name: "qg-dsgdm rounds", edit: func(c *Config) {
		c.Algo, c.Momentum, c.Alpha, c.LocalSteps, c.Edges = "qg-dsgdm", 0.5, 0.1, 2, "matching"
	}, vectors: 1, loss: 2.25},
	{name: "decentlam", edit: func(c *Config) { c.Algo, c.Momentum, c.Alpha = "decentlam", 0.5, 0.1 }, vectors: 1,
		loss: 2.25},
	{name: "d2", edit: func(c *Config) { c.Algo, c.Mixing = "d2", "half-lazy(metropolis)" }, vectors: 1, loss: 1.85},
	{
		name:    "dsgt atc",
		edit:    func(c *Config) { c.Algo, c.Params = "dsgt", Params{"form": "atc"} },
		vectors: 2,
		loss:    1.85,
	},
	{name: "gt-adam", edit: func(c *Config) { c.Algo, c.Alpha = "gt-adam", 0.02 }, vectors: 2, loss: 2.2},
	{name: "sgp", codec: true, loss: 2.2},
	{name: "sgp push", edit: func(c *Config) { c.Algo, c.Edges = "sgp", "push(1)" }, codec: true, loss: 2.2},
	{
		name:  "relaysgd",
		edit:  func(c *Config) { c.Algo, c.Graph, c.Alpha = "relaysgd", "path", 0.1 },
		codec: true,
		loss:  2.36,
	},
	{name: "powergossip", edit: func(c *Config) { c.Algo, c.Edges = "powergossip", "bernoulli(0.5)" }, codec: true,
		loss: 1.85},
	{
		name:  "fspda-sa-sketch",
		edit:  func(c *Config) { c.Algo, c.Edges = "fspda-sa-sketch", "bernoulli(0.5)" },
		codec: true,
		loss:  2.2,
	},
	{name: "fspda-sa-ef topk", edit: func(c *Config) {
		c.Algo, c.Compress, c.Edges = "fspda-sa-ef", "topk", "bernoulli(0.5)"
	}, codec: true, loss: 2.2},
	{name: "fspda-sa-ef randk", edit: func(c *Config) {
		c.Algo, c.Density, c.Edges, c.Optimizer, c.Alpha = "fspda-sa-ef", 0.5, "full", "adamw", 0.01
	}, codec: true, loss: 2.2},
	{name: "fspda-sa-ef sign", edit: func(c *Config) { c.Algo, c.Compress = "fspda-sa-ef", "sign" }, codec: true,
		loss: 2.25},
	{name: "fspda-sa-ef qsgd", edit: func(c *Config) {
		c.Algo, c.Compress, c.Momentum, c.Alpha, c.Edges = "fspda-sa-ef", "qsgd-scaled(15)", 0.5, 0.1, "matching"
	}, codec: true, loss: 2.25},
	{
		name:  "beer",
		edit:  func(c *Config) { c.Algo, c.Compress, c.Density = "beer", "topk", 0.5 },
		codec: true,
		loss:  2.2,
	},
	{name: "ticopd", edit: func(c *Config) { c.Algo, c.Compress, c.Momentum, c.Alpha = "ticopd", "sign", 0.5, 0.1 },
		codec: true, loss: 2.2},
	{name: "ticopd topk broadcast", edit: func(c *Config) {
		c.Algo, c.Compress, c.Density, c.Edges, c.Graph = "ticopd", "topk", 0.5, "broadcast(0.6)", "complete"
	}, codec: true, loss: 2.25},
	{name: "docom", edit: func(c *Config) { c.Algo, c.Compress, c.Density = "docom", "topk", 0.5 }, codec: true,
		loss: 2.2},
	{name: "docom randk", edit: func(c *Config) {
		c.Algo, c.Density, c.Graph, c.AX = "docom", 0.5, "complete", 0.3
	}, codec: true, loss: 2.2},
	{name: "docom sign", edit: func(c *Config) { c.Algo, c.Compress = "docom", "sign" }, codec: true, loss: 2.2},
	{name: "beer randk broadcast", edit: func(c *Config) {
		c.Algo, c.Density, c.Edges, c.Graph = "beer", 0.5, "broadcast(0.6)", "complete"
	}, codec: true, loss: 2.2},
	{
		name:  "choco sign early",
		edit:  func(c *Config) { c.Algo, c.Compress, c.Early = "choco", "sign", true },
		codec: true,
		loss:  2.2,
	},
	{name: "scaffnew", edit: func(c *Config) { c.Algo, c.Momentum, c.Alpha, c.Share = "scaffnew", 0.5, 0.1, 0.9 },
		vectors: 1, loss: 1.85},
	{name: "led", edit: func(c *Config) { c.Algo, c.LocalSteps, c.Momentum, c.Alpha = "led", 5, 0.5, 0.1 }, vectors: 1,
		loss: 1.65},
	{name: "kgt", edit: func(c *Config) { c.Algo, c.LocalSteps, c.Momentum, c.Alpha = "kgt", 5, 0.5, 0.1 }, vectors: 2,
		loss: 1.65},
	{name: "kgt cosine", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.OuterStep, c.Schedule, c.Warmup = "kgt", 10, 0.8, "cosine", 1
	}, vectors: 2, loss: 2.05},
	{name: "diging", vectors: 2, loss: 1.85},
	{name: "diging momentum", edit: func(c *Config) {
		c.Algo, c.Momentum, c.Alpha, c.Edges = "diging", 0.5, 0.1, "bernoulli(0.5)"
	}, vectors: 2, loss: 1.65},
	{name: "extra", vectors: 1, loss: 1.45},
	{name: "prox-gpda", vectors: 1, loss: 1.45},
	{name: "next", edit: func(c *Config) { c.Algo, c.Kappa, c.Sampling = "next", 0.001, "full" }, vectors: 2,
		loss: 1.55},
	{name: "choco", edit: func(c *Config) { c.Algo, c.Density = "choco", 0.5 }, codec: true, loss: 2.2},
	{name: "choco topk broadcast", edit: func(c *Config) {
		c.Algo, c.Compress, c.Edges, c.Momentum, c.Alpha, c.Density = "choco", "topk", "broadcast(0.6)", 0.5, 0.1, 0.5
		c.Graph = "complete"
	}, codec: true, loss: 2.2},
	{name: "choco qsgd", edit: func(c *Config) { c.Algo, c.Compress = "choco", "qsgd(255)" }, codec: true, loss: 1.6},
	{name: "choco qsgd-scaled", edit: func(c *Config) {
		c.Algo, c.Compress, c.Norms, c.Edges = "choco", "qsgd-scaled(7)", "flat", "periodic(2)"
	}, codec: true, loss: 2.2},
	{name: "choco identity", edit: func(c *Config) {
		c.Algo, c.Compress, c.Edges, c.Theta = "choco", "identity", "broadcast-one", AutoFloat{V: 0.2}
	}, codec: true, loss: 2.25},
	{name: "swarm", codec: true, loss: 2.25},
	{name: "swarm lattice", edit: func(c *Config) {
		c.Algo, c.Compress, c.Momentum, c.Alpha, c.Edges = "swarm", "lattice(0.01,1024)", 0.5, 0.1, "matching"
	}, codec: true, loss: 2.25},
	{name: "swarm blocking", edit: func(c *Config) {
		c.Algo, c.Compress, c.Swarm, c.LocalSteps, c.Initiator = "swarm", "lattice(0.01,1024,stochastic)", "blocking",
			2, "degree"
	}, codec: true, loss: 2.25},
	{name: "fspda-async", edit: func(c *Config) {
		c.Algo, c.Slowness, c.ComputeTime = "fspda-async", "linear(4)", "lognormal(0.5)"
	}, codec: true, loss: 2.25},
	{name: "fspda-async in step", edit: func(c *Config) {
		c.Algo, c.ComputeTime, c.Contacts, c.Density, c.Coef = "fspda-async", "constant", 0.5, 1, "one"
	}, codec: true, loss: 2.25},
	{name: "fspda-async-storm", edit: func(c *Config) {
		c.Algo, c.Slowness, c.AX, c.ALambda = "fspda-async-storm", "linear(2)", 0.5, 0.6
	}, codec: true, loss: 2.25},
	{name: "sgd", loss: 1.45},
	{name: "local-sgd", edit: func(c *Config) { c.Algo, c.LocalSteps, c.Momentum, c.Alpha = "local-sgd", 5, 0.5, 0.1 },
		loss: 1.65},
	{name: "des-loc", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Alpha, c.WeightDecay = "des-loc", 5, 0.01, 0.1
		c.Params = Params{"moment_rounds": 1, "square_rounds": 2}
	}, loss: 2},
	{name: "muloco", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Alpha, c.WeightDecay, c.Hidden = "muloco", 10, 0.01, 0.1, Widths{8}
	}, loss: 2.3},
	{name: "diloco", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Optimizer, c.Alpha, c.WeightDecay = "diloco", 10, "adamw", 0.01, 0.1
		c.Schedule, c.Warmup = "cosine", 1
	}, loss: 2},
	{name: "diloco int4", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Params = "diloco", 5, Params{"quantize": "int4", "block": 7}
	}, codec: true, loss: 1.65},
	{name: "diloco int2", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Params = "diloco", 5, Params{"quantize": "int2"}
	}, codec: true, loss: 1.8},
	{name: "diloco fp8", edit: func(c *Config) {
		c.Algo, c.LocalSteps = "diloco", 5
		c.Params = Params{"quantize": "fp8", "collective": "gather", "feedback": 0.9}
	}, codec: true, loss: 1.65},
	{name: "diloco delayed", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Params = "diloco", 5, Params{"outer": "delayed", "outer_lr": 0.4, "outer_momentum": 0}
	}, loss: 2},
	{name: "diloco eager", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Params = "diloco", 5, Params{"outer": "eager", "outer_lr": 0.4, "outer_momentum": 0.2}
	}, loss: 2},
	{name: "sparseloco", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Params = "sparseloco", 5, Params{"side": 8, "k": 4}
	}, codec: true, loss: 2},
	{name: "noloco", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Optimizer, c.Alpha, c.Graph = "noloco", 5, "adamw", 0.02, "complete"
	}, vectors: 2, loss: 2.2},
	{name: "gasloc", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Graph, c.Params = "gasloc", 2, "base(1)", Params{"outer_momentum": 0.5}
	}, vectors: 1, loss: 2},
	{name: "sparta", edit: func(c *Config) { c.Algo, c.Density = "sparta", 0.2 }, loss: 2.2},
	{name: "sparta-diloco", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Density, c.Mask, c.Params = "sparta-diloco", 2, 0.2, "cycle", Params{"outer_steps": 4}
	}, loss: 2.2},
	{name: "streaming-diloco", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Density = "streaming-diloco", 2, 0.2
	}, loss: 2.2},
	{name: "streaming-diloco late", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Density, c.Params = "streaming-diloco", 4, 0.25, Params{"delay": 2}
	}, loss: 2.2},
	{name: "streaming-diloco late whole", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Density, c.Params = "streaming-diloco", 5, 1, Params{"delay": 4, "mix": 0.2}
	}, loss: 2.2},
	{name: "streaming-diloco layers", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Density, c.Hidden = "streaming-diloco", 2, 0.5, Widths{8, 8}
		c.Params = Params{"parts": "sequential", "mix": 0.1}
	}, loss: 2.3},
	{name: "streaming-diloco int8", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Density = "streaming-diloco", 5, 0.25
		c.Params = Params{"quantize": "int8", "block": 100, "delay": 3, "feedback": 0.9}
	}, codec: true, loss: 2.2},
	{name: "streaming-diloco int3", edit: func(c *Config) {
		c.Algo, c.LocalSteps, c.Density, c.Params = "streaming-diloco", 5, 0.25, Params{"quantize": "int3", "delay": 1}
	}, codec: true, loss: 2.2},
	{name: "demo", edit: func(c *Config) { c.Algo, c.Compress, c.Alpha = "demo", "dct(8,4)", 0.01 }, codec: true,
		loss: 2.2},
	{name: "fspda-sa adamw", edit: func(c *Config) {
		c.Algo, c.Optimizer, c.Alpha, c.WeightDecay = "fspda-sa", "adamw", 0.01, 0.01
		c.Edges, c.Density, c.Gamma = "full", 1, 0.3
	}, vectors: 1, loss: 2.2},
	{name: "dsgd nesterov clip", edit: func(c *Config) {
		c.Algo, c.Optimizer, c.Momentum, c.ClipNorm, c.Alpha = "dsgd", "nesterov", 0.5, 0.5, 0.2
	}, vectors: 1, loss: 2.2},
	{name: "swarm blocking adamw", edit: func(c *Config) {
		c.Algo, c.Swarm, c.LocalSteps, c.Optimizer, c.Alpha, c.Edges = "swarm", "blocking", 2, "adamw", 0.02, "matching"
	}, codec: true, loss: 2.25},
}

// synonyms are names of algorithms of other lines, with certain settings.
var synonyms = map[string]struct{ name, of func(c *Config) }{
	"gt-dsgdm": {
		func(c *Config) { c.Algo = "gt-dsgdm" },
		func(c *Config) { c.Algo, c.Optimizer = "next", "heavy-ball" },
	},
	"momentum-tracking": {func(c *Config) { c.Algo, c.Momentum = "momentum-tracking", 0.5 }, func(c *Config) {
		c.Algo, c.Momentum, c.Placement = "diging", 0.5, "local"
	}},
	"edm": {func(c *Config) { c.Algo = "edm" }, func(c *Config) { c.Algo, c.Optimizer = "d2", "heavy-ball" }},
	"exact-diffusion": {func(c *Config) { c.Algo, c.Mixing = "exact-diffusion", "laplacian(0.2)" }, func(c *Config) {
		c.Algo, c.Mixing = "d2", "half-lazy(laplacian(0.2))"
	}},
	"dsgt cta": {
		func(c *Config) { c.Algo, c.Params = "dsgt", Params{"form": "cta"} },
		func(c *Config) { c.Algo = "diging" },
	},
	"dsgt": {func(c *Config) { c.Algo = "dsgt" }, func(c *Config) { c.Algo = "next" }},
}

// recursion returns the algorithm that another one consists of, with traits of its own.
func recursion(a algo.Algorithm) algo.Algorithm {
	for v := reflect.ValueOf(a); v.NumField() == 1; v = reflect.ValueOf(a) {
		inner, ok := v.Field(0).Interface().(algo.Algorithm)
		if !ok {
			break
		}
		a = inner
	}
	return a
}

func TestSynonyms(t *testing.T) {
	for name, pair := range synonyms {
		one, other := small(), small()
		pair.name(&one)
		pair.of(&other)
		a, _ := resolve(t, one)
		b, _ := resolve(t, other)
		if !reflect.DeepEqual(recursion(a.Algo), recursion(b.Algo)) || a.Process.String() != b.Process.String() ||
			a.Mixing != nil && a.Mixing.String() != b.Mixing.String() {
			t.Errorf("%s is %+v, want %+v", name, a.Algo, b.Algo)
		}
	}
}

// config is small, with the line's algorithm on it.
func (l line) config() Config {
	c := small()
	c.Iterations, c.EvalPoints = 120, 1
	if l.edit == nil {
		c.Algo = l.name
	} else {
		l.edit(&c)
	}
	return c
}

func TestTableHasAll(t *testing.T) {
	for _, name := range Algorithms() {
		_, synonym := synonyms[name]
		if !slices.ContainsFunc(lines, func(l line) bool { return l.config().Algo == name }) && name != exampleMethod &&
			!synonym {
			t.Errorf("%s has no line in the table of all algorithms", name)
		}
	}
}

// exampleMethod is registered by an example.
const exampleMethod = "two-step-d2"

// forSomeLines is forLines for every fifth line of the table from first, or for all of it with
// FSPDA_LONG=1. TestTableRuns and TestTableResumes always take all lines.
func forSomeLines(t *testing.T, first int, f func(t *testing.T, l line, c Config)) {
	some := lines
	if os.Getenv("FSPDA_LONG") == "" {
		some = nil
		for i := first; i < len(lines); i += 5 {
			some = append(some, lines[i])
		}
	}
	for _, l := range some {
		t.Run(l.name, func(t *testing.T) { f(t, l, l.config()) })
	}
}

func forLines(t *testing.T, f func(t *testing.T, l line, c Config)) {
	for _, l := range lines {
		t.Run(l.name, func(t *testing.T) { f(t, l, l.config()) })
	}
}

// Each learns, repeats its bits whatever the threads and the order of messages, is the plain
// program in lockstep, and costs the bits of its formula in each accounting.
func TestTableRuns(t *testing.T) {
	forLines(t, func(t *testing.T, l line, c Config) {
		r := play(t, c, Options{})
		first, last := r.Rows[0], r.Rows[len(r.Rows)-1]
		if !(float64(last.TrainLossAvg) < l.loss) || last.TestAccAvg < 2*first.TestAccAvg {
			t.Errorf("F fell from %.3f to %.3f, accuracy rose from %.2f to %.2f", float64(first.TrainLossAvg),
				float64(last.TrainLossAvg), float64(first.TestAccAvg), float64(last.TestAccAvg))
		}
		c.Iterations = 40 // There are several rounds, whose messages come in different orders.
		r = play(t, c, Options{})
		last = r.Rows[len(r.Rows)-1]
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
		c.Threads = 8
		if trace(t, play(t, c, Options{Transport: disttest.NewSim(c.Agents, 9,
			disttest.Faults{MaxDelay: 5, Reorder: true})})) != trace(t, r) {
			t.Error("with other threads and a slower network it is another run")
		}
		s, m := resolve(t, c)
		if !s.Asynchronous() {
			for i, x := range lockstep(t, s, m) {
				if !slices.Equal(x, r.Models[i]) {
					t.Errorf("agent %d differs from the plain program", i)
				}
			}
			if !l.codec && !s.AllReduces() {
				checkBits(t, l, s, last)
			}
		}
	})
}

// checkBits compares with 2·v·k a vector and edge, and one index a coordinate and edge.
func checkBits(t *testing.T, l line, s *Setup, last Row) {
	t.Helper()
	k, index := uint64(s.Mask.Len()), uint64(17)
	for 1<<(index-1) >= s.Dim {
		index--
	}
	if s.Mask.Dense() {
		index = 0
	}
	var values, indices uint64
	for it := range s.Config.Iterations {
		edges := uint64(len(s.Process.Active(nil, it)))
		switch {
		case it == 0 && l.silent:
		case it == 0 && l.late:
			values, indices = values+edges*2*k, indices+edges*k
		default:
			values, indices = values+edges*2*k*l.vectors, indices+edges*k
		}
	}
	reference := uint64(64)
	if index == 0 {
		reference = 0
	}
	if last.BitsSharedSeed != 32*values || last.BitsPacked != 32*values+index*indices ||
		last.BitsReference != 32*values+reference*indices || last.WireBytes != 4*values {
		t.Errorf("bits %d, %d, %d, %d bytes; want those of %d values and %d indices of %d bits", last.BitsSharedSeed,
			last.BitsPacked, last.BitsReference, last.WireBytes, values, indices, index)
	}
	if want := s.Config.Iterations * s.Graph.N; last.GradsTotal != want && last.GradsTotal != 2*want-s.Graph.N &&
		last.GradsTotal != 2*want-2*s.Graph.N {
		t.Errorf("%d gradients in %d iterations of %d agents", last.GradsTotal, s.Config.Iterations, s.Graph.N)
	}
}

// Edges that fail do so for both ends: what should sum to zero still does, nobody waits, and the
// run learns and repeats its bits.
func TestTableSurvivesFailingEdges(t *testing.T) {
	forSomeLines(t, 2, func(t *testing.T, l line, c Config) {
		run := func() (*Result, error) {
			return try(t, context.Background(), c,
				Options{Transport: disttest.NewSim(c.Agents, 4, disttest.Faults{Cut: 0.3, MaxDelay: 3})})
		}
		r, err := run()
		needed := []string{"choco", "beer", "ticopd", "docom", "sgp", "demo", "sparseloco"}
		if s, _ := resolve(t, c); s.AllReduces() || slices.Contains(needed, c.Algo) {
			if err == nil {
				t.Error("it went on without a message that it needs")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		last := r.Rows[len(r.Rows)-1]
		if !(float64(last.TrainLossAvg) < l.loss) || last.DualSum > 1e-3 && c.Dual != "stale-neighbour" {
			t.Errorf("F %.3f, |sum of duals| %g", float64(last.TrainLossAvg), float64(last.DualSum))
		}
		again, err := run()
		if err != nil || trace(t, r) != trace(t, again) {
			t.Errorf("the runs with the same faults differ, error %v", err)
		}
	})
}

// A run that is stopped at a random iteration, with FSPDA_LONG=1 at two, and resumed gives the bits
// of one that was not. [TestResume] stops some more often.
func TestTableResumes(t *testing.T) {
	most := 1
	if os.Getenv("FSPDA_LONG") != "" {
		most = 2
	}
	forLines(t, func(t *testing.T, l line, c Config) {
		c.Iterations, c.Batch = 40, min(c.Batch, 4)
		if c.Algo == "scaffnew" { // its usual coin(0.1) lets the others come to the end before agent 0 stops them
			c.Edges = "coin(0.5)"
		}
		want, part := trace(t, play(t, c, Options{})), runFolder(t)
		s := rng.New(2, "stops "+l.name)
		for stops := 0; ; {
			ctx, stop := context.WithCancel(context.Background())
			at := -1
			if stops < most {
				at = s.IntN(c.Iterations / 4) // later, others may have come to the end
			}
			r, err := inFolder(t, ctx, c, part, stopping(at, stop))
			stop()
			if err != nil {
				t.Fatal(err)
			}
			if r.Status == Stopped {
				stops++
				continue
			}
			if stops == 0 {
				t.Fatal("the run was never stopped")
			}
			if trace(t, r) != want {
				t.Errorf("stopped %d times, and the result differs", stops)
			}
			return
		}
	})
}

// What an algorithm remembers is where it should be: the tracked vector comes nearer to its limit
// as training goes on.
func TestTableTracks(t *testing.T) {
	forSomeLines(t, 0, func(t *testing.T, l line, c Config) {
		s, _ := resolve(t, c)
		// the vectors of adamw tend to no limit; a sketch of a large matrix needs more iterations
		if s.Traits.Tracked.Name == "" || c.Algo == "fspda-sa-sketch" || c.Dual != "same-time" ||
			c.Optimizer == "adamw" {
			return
		}
		c.Hidden, c.Iterations, c.EvalPoints, c.Sampling = Widths{}, 200, 2, "full"
		c.Alpha, c.Edges, c.Density, c.Gamma, c.Eta, c.Schedule, c.Momentum = 0.05, "auto", 1, 0.3, AutoFloat{V: 0.05},
			"constant", 0
		switch c.Algo {
		case "fspda-sa", "fspda-storm":
			c.Edges = "full"
		case "fspda-sa-ef", "ticopd": // Signs of gradients with many zeros would need far smaller gains.
			c.Compress, c.Density, c.Iterations = "topk", 0.5, 400
		}
		if s.Asynchronous() { // one edge at a time
			c.Iterations = 1500
		}
		r := play(t, c, Options{})
		first, last := float64(r.Rows[0].DualTrack), float64(r.Rows[len(r.Rows)-1].DualTrack)
		if !(last < 0.1*first) {
			t.Errorf("the tracked vectors went from %g to %g from their limits", first, last)
		}
		t.Logf("squared distance from the limits: %.3g, then %.3g", first, last)
	})
}

// Figure 1 of the paper counts, in units of d an iteration on its graph of 16 edges with 64-bit
// indices: K-GT 13.65 with rounds of 150, LED 13.65 with rounds of 75, FSPDA-SA of all coordinates
// 64 an edge. Other lines of it are in the tests of dist.
func TestFigureOneBits(t *testing.T) {
	for _, l := range []struct {
		algo         string
		steps, T     int
		want, within float64
	}{
		{"kgt", 150, 150, 13.65, 0.005},
		{"led", 75, 150, 13.65, 0.005},
		{"fspda-sa", 0, 20, 64, 0},
	} {
		c := small()
		c.Algo, c.LocalSteps, c.Iterations, c.EvalPoints, c.Accounting = l.algo, l.steps, l.T, 1, "reference"
		c.Agents, c.Graph, c.Density, c.Hidden = 10, "er10-published", 1, Widths{2}
		s, _ := resolve(t, c)
		r := play(t, c, Options{})
		if got := float64(r.Rows[1].BitsTotal) / float64(l.T) / float64(s.Dim); math.Abs(got-l.want) > l.within {
			t.Errorf("%s: %.4f d an iteration, want %.2f d", l.algo, got, l.want)
		}
	}
}
