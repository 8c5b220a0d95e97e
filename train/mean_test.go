package train

import (
	"math"
	"slices"
	"sync"
	"testing"

	"fspda/device"
	"fspda/dist"
	"fspda/model"
)

// summer is a network that adds up the gradients of a run in the order of their calls.
type summer struct {
	*model.Engine
	mu  sync.Mutex
	all *[][]float64 // of an iteration each, if agents proceed in step
	of  int          // gradients of an iteration
	n   *int         // so far
}

func (s *summer) Async() bool { return false }

func (s *summer) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	loss, err := s.Engine.StartGrad(dst, x, buffers, b)()
	if err != nil {
		return ended(loss, err)
	}
	g := make([]float32, dst.Len())
	cpuDevice.Read(g, dst)
	s.mu.Lock()
	defer s.mu.Unlock()
	if *s.n%s.of == 0 {
		*s.all = append(*s.all, make([]float64, len(g)))
	}
	*s.n++
	sum := (*s.all)[len(*s.all)-1]
	for k, v := range g {
		sum[k] += float64(v)
	}
	return ended(loss, nil)
}

// noMeanRule lists methods whose mean model does not move by -alpha times the mean of the gradients
// or of their momenta, with why.
var noMeanRule = map[string]string{
	"fspda-storm": "follows its momenta", "docom": "follows its estimates", "fspda-async": "agents have coefficients",
	"fspda-async-storm": "both", "gt-adam": "not linear", "demo": "steps are signs", "des-loc": "not linear",
	"relaysgd": "models are late", "diloco": "outer steps", "sparseloco": "outer steps",
	"muloco": "outer steps", "noloco": "outer steps", "gasloc": "outer steps", "sparta-diloco": "outer steps",
	"streaming-diloco": "outer steps",
	"qg-dsgdm":         "its momentum is that of the models", "swarm": "copies are late",
}

// The mean model moves by -alpha times the mean of the agents' gradients, or of their momenta, in
// every format of values: averages leave it where it is, and what is sent does not change what an
// agent goes on with. Sums are in float64 over a run of 20 iterations.
func TestMeanRule(t *testing.T) {
	for _, name := range slices.Concat(Algorithms(), []string{"dsgt cta", "dsgt atc", "swarm blocking"}) {
		if noMeanRule[name] != "" {
			continue
		}
		for _, wire := range dist.ValueFormats() {
			c := small()
			c.Algo, c.Agents, c.Graph, c.Iterations, c.EvalPoints, c.Wire = name, 4, "complete", 20, 1, wire
			c.Alpha, c.Metrics, c.WeightDecay, c.Edges = 0.2, "test", 0.01, "auto"
			switch name {
			case "dsgt cta", "dsgt atc":
				c.Algo, c.Params = "dsgt", Params{"form": name[5:]}
			case "swarm blocking":
				c.Algo, c.Swarm, c.Edges = "swarm", "blocking", "matching"
			case "sgp":
				c.Edges = "one-peer-exp"
			case "scaffnew", "led", "kgt", "local-sgd":
				c.LocalSteps = 5
			}
			if fullEdges(t, c) {
				c.Edges = "full"
			}
			if wire != "fp32" && (name == "sgd" || name == "local-sgd") {
				continue // the steps themselves are what is sent, and rounded
			}
			if _, err := c.Resolve(labSet, labModel(t, c)); err != nil {
				if wire == "fp32" {
					t.Errorf("%s: %v", name, err)
				}
				continue // it does not send plain values
			}
			checkMeanRule(t, name, c)
		}
	}
}

// fullEdges reports whether all edges can be active at once.
func fullEdges(t *testing.T, c Config) bool {
	t.Helper()
	c.Edges = "full"
	_, err := c.Resolve(labSet, labModel(t, c))
	return err == nil
}

func checkMeanRule(t *testing.T, name string, c Config) {
	t.Helper()
	s, engine := resolve(t, c)
	var all [][]float64
	n := 0
	m := &summer{Engine: engine, all: &all, of: c.Agents, n: &n}
	got, err := Run(t.Context(), s, Options{Device: cpuDevice, Model: m})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if n < c.Agents*c.Iterations/2 {
		t.Errorf("%s: %d gradients were seen", name, n)
	}
	want, mean, size := make([]float64, s.Dim), make([]float64, s.Dim), 0.0
	for k, v := range engine.Init(c.Seed) {
		want[k] = float64(v)
	}
	for it, sum := range all {
		weight, mu := 1.0, s.Config.Momentum
		if mu > 0 {
			weight = (1 - math.Pow(mu, float64(len(all)-it))) / (1 - mu)
		}
		for k, v := range sum {
			want[k] -= c.Alpha * weight * v / float64(c.Agents)
		}
	}
	for _, x := range got.Models {
		for k, v := range x {
			mean[k] += float64(v) / float64(c.Agents)
		}
	}
	worst := 0.0
	for k := range want {
		worst, size = max(worst, math.Abs(want[k]-mean[k])), max(size, math.Abs(want[k]))
	}
	if worst > 5e-6*size {
		t.Errorf("%s, %s: the mean model is %.3g off, of %.3g", name, c.Wire, worst, size)
	}
}
