package config

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/dist"
)

// warned reports whether a setup has a warning with a text.
func warned(s *Setup, text string) bool {
	return slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// Whether gossip diverges is judged by the edges that are active together: a process that plays all
// edges whenever it plays any is refused where full is, whatever its name, and disjoint pairs are
// never warned about.
func TestStabilityOfProcesses(t *testing.T) {
	for edges, want := range map[string]string{
		"full": "refused", "bernoulli(1)": "refused", "k-edges-exact(10)": "refused", "periodic(3)": "refused",
		"coin(0.01)": "refused", "k-edges-exact(9)": "warned", "bernoulli(0.9)": "warned", "matching": "",
		"one-edge":             "",
		"one-edge-round-robin": "",
	} {
		c := small()
		c.Algo, c.Graph, c.Edges, c.Mask, c.Density = "dsgd", "complete", edges, "all", 1 // 10 edges, eigenvalue 5
		c.Theta = AutoFloat{V: 0.5}
		s, err := c.Resolve(labSet, labModel(t, c))
		got := ""
		switch {
		case err != nil && strings.Contains(err.Error(), "outside the stable region of graph complete"):
			got = "refused"
		case err != nil:
			t.Fatal(err)
		case warned(s, "may diverge"):
			got = "warned"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", edges, got, want)
		}
	}
}

// On a cycle of rounds stability is that of the whole cycle: of base(4) on five agents, one round
// of five that all meet, a gain of 0.5 triples differences where lambda is 0, and one of 0.3
// shrinks them. A mask has no fixed cycle. Pairs are always stable.
func TestStabilityOfCycles(t *testing.T) {
	for _, l := range []struct {
		algo, graph    string
		agents         int
		gain, density  float64
		refused, grows bool
	}{
		{"fspda-sa", "base(4)", 5, 0.5, 1, true, true},
		{"fspda-sa", "base(4)", 25, 0.5, 1, true, true},
		{"fspda-sa", "base(4)", 25, 0.2, 1, false, false},
		{"fspda-sa", "base(4)", 5, 0.5, 0.1, false, true},
		{"fspda-sa", "base(1)", 6, 0.5, 1, false, false},
		{"fspda-sa", "base(2)", 6, 0.5, 1, false, false},
		{"fspda-sa", "simple-base(3)", 7, 0.6, 1, true, true},
		{"dsgd", "base(4)", 5, 0.5, 1, true, true},
		{"dsgd", "simple-base(3)", 7, 0.6, 1, true, true},
		{"dsgd", "hyper-hypercube(4)", 25, 0.3, 1, false, false},
	} {
		c := small()
		c.Algo, c.Graph, c.Edges, c.Agents, c.Density, c.Gamma = l.algo, l.graph, l.graph, l.agents, l.density, l.gain
		c.Beta, c.Eta = 1, AutoFloat{V: l.gain / 100}
		if l.algo == "dsgd" {
			c.Beta, c.Eta = small().Beta, small().Eta
			c.Gamma, c.Weights, c.Theta = small().Gamma, "constant", AutoFloat{V: l.gain}
		}
		if l.algo != "dsgd" {
			c.SetExplicit("gamma")
		}
		_, err := c.Resolve(labSet, labModel(t, c))
		if refused := err != nil; refused != l.refused || refused &&
			!strings.Contains(err.Error(), "in each cycle") && !strings.Contains(err.Error(), "all edges at once") {
			t.Errorf("%s on %s of %d with gain %g and density %g: %v",
				l.algo, l.graph, l.agents, l.gain, l.density, err)
			continue
		}
		p, err := dist.ParseProcess(l.graph, mustGraph(t, l.graph, l.agents), 1)
		if err != nil {
			t.Fatal(err)
		}
		if far := gossiped(p, l.agents, l.gain, l.gain/100); (far > 1e3) != l.grows {
			t.Errorf("gossip over %s of %d with gain %g comes %g apart", l.graph, l.agents, l.gain, far)
		}
	}
}

func mustGraph(t *testing.T, spec string, n int) *dist.Graph {
	t.Helper()
	g, err := dist.ParseGraph(spec, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gossiped returns how far apart agents are after 200 iterations of FSPDA-SA without gradients,
// which began with one of them at 1 and the others at 0.
func gossiped(p dist.Process, n int, gamma, etaBeta float64) (far float64) {
	x, dual := make([]float64, n), make([]float64, n)
	x[0] = 1
	for t := range 200 {
		next := slices.Clone(x)
		for i := range n {
			next[i] -= dual[i]
		}
		for _, e := range p.Active(nil, t) {
			d := x[e.From] - x[e.To]
			next[e.From], next[e.To] = next[e.From]-gamma*d, next[e.To]+gamma*d
			dual[e.From], dual[e.To] = dual[e.From]+etaBeta*d, dual[e.To]-etaBeta*d
		}
		x = next
	}
	return slices.Max(x) - slices.Min(x)
}

// c_max auto follows the declared slowness; a run in which the limit biases an agent says so, and
// one in which it does not says nothing.
func TestCMax(t *testing.T) {
	for _, c := range []struct {
		text   string
		limit  float64
		warned bool
	}{
		{"{algo: fspda-async}", 10, false}, {"{algo: fspda-async, slowness: linear(4)}", 10, false},
		{"{algo: fspda-async, slowness: straggler(12)}", 24, false},
		{"{algo: fspda-async, slowness: straggler(12), c_max: 4}", 4, true},
		{"{algo: fspda-async, slowness: straggler(12), coef: one}", 24, false}, {"{algo: dsgd}", 10, false},
	} {
		config := small()
		if err := config.Parse("run.yaml", []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		s, _ := resolve(t, config)
		if got := s.Config.CMax; got != c.limit || warned(s, "limited to c_max") != c.warned {
			t.Errorf("%s: c_max %v, warnings %q", c.text, got, s.Warnings)
		}
	}
}

// A run of one agent says that nothing is exchanged.
func TestOneAgentIsTold(t *testing.T) {
	for algo, want := range map[string]bool{"fspda-sa": true, "led": true, "sgd": false} {
		c := small()
		c.Algo, c.Agents, c.Graph, c.Iterations = algo, 1, "complete", 80
		if s, _ := resolve(t, c); warned(s, "no edge") != want {
			t.Errorf("%s: %q", algo, s.Warnings)
		}
	}
}

// LED is refused on the matrices with which its recursion lets differences between agents grow
// without curvature, and Scaffnew warned of; the suggested matrix and share are accepted.
func TestStabilityOfRounds(t *testing.T) {
	for _, l := range []struct {
		graph, mixing string
		agents        int
		share         float64 // of Scaffnew
		grows         bool
	}{
		{"hypercube", "metropolis", 8, 1, true}, {"hypercube", "half-lazy(metropolis)", 8, 1, false},
		{"hypercube", "metropolis", 8, 0.667, false}, {"hypercube", "metropolis", 8, 0.9, true},
		{"grid", "metropolis", 8, 1, true}, {"ring", "metropolis", 5, 1, false}, {"ring", "metropolis", 6, 1, false},
		{"ring", "laplacian(0.4)", 6, 1, true}, {"star", "metropolis", 6, 1, false},
	} {
		for _, algo := range []string{"led", "scaffnew"} {
			if algo == "led" && l.share != 1 {
				continue
			}
			c := small()
			c.Algo, c.Graph, c.Mixing, c.Agents, c.LocalSteps = algo, l.graph, l.mixing, l.agents, 5
			if algo == "scaffnew" {
				c.Share = l.share
			}
			c.Iterations, c.EvalPoints = 100, 4
			c.SetExplicit("mixing")
			s, err := c.Resolve(labSet, labModel(t, c))
			if refused := err != nil; refused != (l.grows && algo == "led") {
				t.Errorf("%s %v: %v", algo, l, err)
			} else if !refused && warned(s, "smaller alpha") != l.grows {
				t.Errorf("%s %v: %q", algo, l, s.Warnings)
			}
			if err == nil && roundsGrow(s.Graph.N, s.Mixing.At, l.share) != l.grows {
				t.Errorf("%s %v: the recursion grows: %v", algo, l, !l.grows)
			}
		}
	}
}

// roundsGrow reports whether rounds of x ← x - y, then y ← y + c·(I-W)x and x ← x - c·(I-W)x, let
// differences between agents grow.
func roundsGrow(n int, w func(i, j int) float64, c float64) bool {
	x, y, move := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = math.Sin(float64(1 + i*i))
	}
	for range 400 {
		for i := range x {
			x[i] -= y[i]
		}
		for i := range x {
			move[i] = 0
			for j := range x {
				move[i] += c * w(i, j) * (x[i] - x[j])
			}
		}
		for i, m := range move {
			x[i], y[i] = x[i]-m, y[i]+m
		}
	}
	return slices.Max(x)-slices.Min(x) > 1e3
}

// The printed theta of CHOCO-SGD in figure 2 is refused with the printed probability, and accepted
// with that of the scripts.
func TestPrintedTheta(t *testing.T) {
	for p, want := range map[float64]bool{0.1: false, 0.5: true} {
		c := small()
		c.Algo, c.Agents, c.Graph, c.Edges, c.Density = "choco", 8, "complete", fmt.Sprintf("broadcast(%g)", p), 0.1
		c.Compress, c.Theta = "randk", AutoFloat{V: 0.05}
		if _, err := c.Resolve(labSet, labModel(t, c)); (err == nil) != want {
			t.Errorf("p %g: %v", p, err)
		}
	}
}

// GASLoC's momentum is refused where it makes slow models of pairs drift apart; the default is not.
func TestStabilityOfOuterMomentum(t *testing.T) {
	for _, l := range []struct {
		graph, edges    string
		agents          int
		gamma, momentum float64 // momentum 0: the default
		refused         bool
	}{
		{"complete", "matching", 10, 0.5, 0, false},
		{"ring", "one-edge", 10, 0.5, 0, false},
		{"path", "matching", 32, 0.5, 0, false},
		{"base(1)", "auto", 32, 0.5, 0, false},
		{"complete", "matching", 10, 0.5, 0.9, true},
		{"ring", "matching", 8, 0.5, 0.9, true},
		{"ring", "matching", 8, 0.25, 0.8, false}, // smaller steps of averaging admit more momentum
		{"ring", "matching", 8, 0.5, 0.8, true},
		{"complete", "matching", 2, 0.5, 0.9, false}, // a pair that always meets
		{"ring", "full", 8, 0.3, 0.9, false},
		{"complete", "broadcast(0.5)", 8, 0.5, 0.5, true}, // several edges at once: at any momentum
	} {
		c := small()
		c.Algo, c.Graph, c.Edges, c.Agents, c.Gamma, c.LocalSteps, c.Iterations = "gasloc", l.graph, l.edges, l.agents,
			l.gamma, 5, 100
		c.Batch = 1
		if l.momentum > 0 {
			c.Params = Params{"outer_momentum": l.momentum}
			c.SetExplicit("gamma")
		}
		_, err := c.Resolve(labSet, labModel(t, c))
		advice := "below 0."
		if l.edges == "broadcast(0.5)" {
			advice = "also without momentum"
		}
		if err != nil && !strings.Contains(err.Error(), advice) {
			t.Fatal(err)
		}
		if refused := err != nil; refused != l.refused {
			t.Errorf("%d agents, graph %s, edges %s, gamma %g, momentum %g: %v", l.agents, l.graph, l.edges, l.gamma,
				l.momentum, err)
		}
	}
}

// Agents that never broadcast average nothing. theta auto, which then has no stable limit, is no
// error.
func TestSilentAgents(t *testing.T) {
	for _, algo := range []string{"choco", "beer"} {
		c := small()
		c.Algo, c.Edges = algo, "empty"
		if _, err := c.Resolve(labSet, labModel(t, c)); err != nil {
			t.Errorf("%s: %v", algo, err)
		}
	}
}

// Eta auto counts contacts by messages of their whole length: after it is resolved, the same rule
// gives the same value. Where links are slow, two vectors in a message halve the contacts of one.
func TestEtaOfContacts(t *testing.T) {
	links := filepath.Join(t.TempDir(), "links.yaml")
	text := "gradient_ms: 5\nuplink_mbit: 0.1\ndefault: {latency_ms: 20, bandwidth_mbit: 0.1}\n"
	if err := os.WriteFile(links, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, algo := range []string{"fspda-async", "fspda-async-storm"} {
		c := small()
		c.Algo, c.Links = algo, links
		s, _ := resolve(t, c)
		if again := s.autoEta(); s.Config.Eta != again {
			t.Errorf("%s: eta auto is %v, and %v by the timeline of the run", algo, s.Config.Eta, again)
		}
	}
}

// A large step size of an optimizer whose steps do not follow the gradient is warned of.
func TestUnitSteps(t *testing.T) {
	for _, l := range []struct {
		algo, optimizer string
		alpha           float64
		warned          bool
	}{
		{"gt-adam", "auto", 0.3, true}, {"demo", "auto", 0.3, true}, {"fspda-sa", "adamw", 0.3, true},
		{"gt-adam", "auto", 0.01, false}, {"demo", "auto", 0.01, false}, {"fspda-sa", "auto", 0.3, false},
	} {
		c := small()
		c.Algo, c.Optimizer, c.Alpha = l.algo, l.optimizer, l.alpha
		if s, _ := resolve(t, c); warned(s, "moves each weight") != l.warned {
			t.Errorf("%+v: %q", l, s.Warnings)
		}
	}
}

// A momentum that contains the averaging is refused where agents that met pass their mean, which a
// run without gradients shows.
func TestStabilityOfMomentum(t *testing.T) {
	for _, l := range []struct {
		algo, graph, edges string
		agents             int
		momentum           float64
		refused            bool
	}{
		{"decentlam", "complete", "one-edge", 10, 0.9, true},
		{"decentlam", "ring", "one-edge", 10, 0.9, true},
		{"decentlam", "ring", "matching", 10, 0.9, true},
		{"decentlam", "complete", "one-edge", 10, 0.3, false},
		{"decentlam", "complete", "one-edge", 2, 0.9, false}, // both edges of a pair are always active
		{"decentlam", "complete", "full", 10, 0.9, false},
		{"decentlam", "ring", "full", 10, 0.9, false},
		{"decentlam", "ring", "full", 300, 0.9, false},
		{"decentlam", "ring", "one-edge", 300, 0.9, true},
		{"qg-dsgdm", "ring", "one-edge", 10, 0.9, false},
		{"qg-dsgdm", "ring", "one-edge", 50, 0.9, true},
		{"qg-dsgdm", "ring", "one-edge", 50, 0.3, false},
		{"qg-dsgdm", "complete", "one-edge", 40, 0.9, true},
		{"qg-dsgdm", "complete", "matching", 40, 0.9, false},
		{"qg-dsgdm", "ring", "full", 50, 0.9, false},
		{"qg-dsgdm", "hypercube", "full", 256, 0.5, true}, // W has the eigenvalue -7/9
		{"qg-dsgdm", "base(2)", "auto", 10, 0.9, false},
	} {
		if l.graph == "hypercube" && os.Getenv("FSPDA_LONG") == "" {
			continue // takes seconds
		}
		c := small()
		c.Algo, c.Graph, c.Edges, c.Agents, c.Density, c.Mask = l.algo, l.graph, l.edges, l.agents, 1, "all"
		c.Momentum, c.Optimizer, c.Batch = l.momentum, "heavy-ball", 1
		_, err := c.Resolve(labSet, labModel(t, c))
		if err != nil && !strings.Contains(err.Error(), "below 0.") {
			t.Fatal(err)
		}
		if refused := err != nil; refused != l.refused {
			t.Errorf("%s, %d agents, graph %s, edges %s, momentum %g: %v", l.algo, l.agents, l.graph, l.edges,
				l.momentum, err)
		}
		if l.algo == "qg-dsgdm" {
			if far := quasiGlobalSpread(t, c); (far > 1e3) != l.refused {
				t.Errorf("qg-dsgdm on %+v comes %g apart", l, far)
			}
		}
	}
}

// quasiGlobalSpread returns how far apart the agents of qg-dsgdm are after 8000 iterations without
// gradients.
func quasiGlobalSpread(t *testing.T, c Config) float64 {
	t.Helper()
	edges := c.Edges
	if edges == "auto" {
		edges = c.Graph
	}
	p, err := dist.ParseProcess(edges, mustGraph(t, c.Graph, c.Agents), c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	x, m := make([]float64, c.Agents), make([]float64, c.Agents)
	for i := range x {
		x[i] = math.Cos(float64(i * i))
	}
	for it := range 8000 {
		y, degree, active := make([]float64, len(x)), make([]int, len(x)), p.Active(nil, it)
		for i := range x {
			y[i] = x[i] - c.Momentum*m[i]
		}
		for _, e := range active {
			degree[e.From]++
			degree[e.To]++
		}
		next := slices.Clone(y)
		for _, e := range active {
			w := 1 / float64(1+max(degree[e.From], degree[e.To]))
			if p.Weighted() {
				w = p.Weight(e, it)
			}
			next[e.From] += w * (y[e.To] - y[e.From])
			next[e.To] += w * (y[e.From] - y[e.To])
		}
		for i := range x {
			m[i] = c.Momentum*m[i] + (1-c.Momentum)*(x[i]-next[i])
		}
		x = next
	}
	return slices.Max(x) - slices.Min(x)
}

// NoLoCo's gains are refused where equation 74 excludes them, and where pairs drift apart although
// it admits them.
func TestStabilityOfNoLoCo(t *testing.T) {
	for _, l := range []struct {
		edges          string
		agents         int
		momentum, pull float64
		refused        bool
	}{
		{"matching", 10, 0.5, 0.7, false}, {"matching", 10, 0.5, 1.4, false}, {"one-edge", 30, 0.5, 0.7, false},
		{"matching", 10, 0.5, 0.4, true}, {"matching", 10, 0.5, 1.6, true}, // equation 74
		{"matching", 10, 0.9, 0.91, true}, {"matching", 10, 0.9, 1.2, true}, {"one-edge", 30, 0.5, 1.4, true},
		{"matching", 2, 0.9, 1.2, false}, // a pair that always meets
	} {
		c := small()
		c.Algo, c.Graph, c.Edges, c.Agents, c.Batch = "noloco", "complete", l.edges, l.agents, 1
		c.LocalSteps, c.Iterations = 5, 100
		c.Params = Params{"outer_momentum": l.momentum, "pull": l.pull}
		_, err := c.Resolve(labSet, labModel(t, c))
		if err != nil && !strings.Contains(err.Error(), "drift apart") && !strings.Contains(err.Error(), "below 0.") {
			t.Fatal(err)
		}
		if refused := err != nil; refused != l.refused {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// A correction that passes through a momentum is warned of, since it acts late. D² on a ring of
// five diverges with a heavy ball of 0.9 if its correction passes through it, and not otherwise.
func TestCorrectionBehindMomentum(t *testing.T) {
	for _, placement := range []string{placementCorrected, placementLocal} {
		c := small()
		c.Algo, c.Graph, c.Edges, c.Agents, c.Batch = "d2", "ring", "full", 5, 1
		c.Momentum, c.Placement = 0.9, placement
		s, err := c.Resolve(labSet, labModel(t, c))
		if err != nil {
			t.Fatal(err)
		}
		warned := strings.Contains(strings.Join(s.Warnings, "\n"), "up to 10 iterations late")
		// D² in differences: x ← W(x - u), h ← h + (I-W)(x - u), on each eigenvector of W.
		far := 0.0
		for _, w := range s.Mixing.Spectrum()[:4] {
			x, m, h := 1.0, 0.0, 0.5
			for range 1000 {
				u := h
				if placement == placementCorrected {
					m = 0.9*m + h
					u = m
				}
				x, h = w*(x-u), h+(1-w)*(x-u)
			}
			far = max(far, math.Abs(x))
		}
		if grows := !(far < 1e3); warned != grows {
			t.Errorf("placement %s: warned %v, differences come to %v; warnings %q", placement, warned, far, s.Warnings)
		}
	}
}
