package dist

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
)

func mustProcess(t testing.TB, spec string, g *Graph, seed uint64) Process {
	t.Helper()
	p, err := ParseProcess(spec, g, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// processes lists one process of each kind, as written by String.
var processes = []string{"one-edge", "one-edge-round-robin", "k-edges(2.5)", "k-edges-exact(3)", "bernoulli(0.3)",
	"broadcast(0.15)", "broadcast-one", "broadcast-rr", "matching", "periodic(4)", "coin(0.3)", "full", "empty",
	"push(2)"}

// The contract of every process: String can be parsed, events are valid, ascending and distinct,
// two copies agree, the slice is reused without allocation, and the events depend on t alone, in
// any order of calls.
func TestEveryProcess(t *testing.T) {
	for _, graph := range []string{"er10-published", "ring", "complete"} {
		g := mustGraph(t, graph, 10)
		for _, spec := range processes {
			t.Run(graph+"/"+spec, func(t *testing.T) { checkProcess(t, g, spec) })
		}
	}
}

func checkProcess(t *testing.T, g *Graph, spec string) {
	p, twin := mustProcess(t, spec, g, 7), mustProcess(t, spec, g, 7)
	if p.String() != spec {
		t.Errorf("String is %q", p)
	}
	const rounds = 300
	kept := make([][]Event, rounds)
	for k := range rounds {
		kept[k] = slices.Clone(p.Active(nil, k))
		for m, e := range kept[k] {
			if edge := g.Edges[e.Edge]; (Edge{min(e.From, e.To), max(e.From, e.To)}) != edge {
				t.Fatalf("t=%d: event %+v is not edge %v", k, e, edge)
			}
			if m > 0 && kept[k][m-1].Edge >= e.Edge {
				t.Fatalf("t=%d: events %v are not ascending", k, kept[k])
			}
		}
	}
	dst := make([]Event, 0, len(g.Edges))
	for k := rounds - 1; k >= 0; k-- {
		dst = twin.Active(dst, k)
		if !slices.Equal(dst, kept[k]) {
			t.Fatalf("t=%d: the second call returns %v, the first %v", k, dst, kept[k])
		}
	}
	round := 0
	if allocs := testing.AllocsPerRun(200, func() { dst = p.Active(dst, round); round++ }); allocs != 0 &&
		!raceEnabled {
		t.Errorf("Active allocates %v times", allocs)
	}
}

// The share of iterations at which each edge is active is Rate, within five standard errors.
func TestRates(t *testing.T) {
	const rounds = 20000
	g := mustGraph(t, "er10-published", 10)
	for _, spec := range processes {
		p := mustProcess(t, spec, g, 21)
		count := make([]float64, len(g.Edges))
		var events []Event
		for k := range rounds {
			events = p.Active(events, k)
			for _, e := range events {
				count[e.Edge]++
			}
		}
		for k := range count {
			rate := p.Rate(k)
			tolerance := 5 * math.Sqrt(rate*(1-rate)/rounds)
			if got := count[k] / rounds; math.Abs(got-rate) > tolerance+1e-12 {
				t.Errorf("%s: edge %v has frequency %.4f, want %.4f within %.4f", spec, g.Edges[k], got, rate,
					tolerance)
			}
		}
	}
}

func TestExactRates(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	for _, c := range []struct {
		spec     string
		min, max float64
	}{
		{"one-edge", 0.0625, 0.0625},
		{"one-edge-round-robin", 0.045, 0.100},
		{"k-edges(4)", 0.25, 0.25},
		{"k-edges-exact(4)", 0.25, 0.25},
		{"bernoulli(0.013)", 0.013, 0.013},
		{"broadcast(0.1)", 0.19, 0.19},
		{"broadcast-one", 0.2, 0.2},
		{"broadcast-rr", 0.2, 0.2},
		{"periodic(8)", 0.125, 0.125},
		{"coin(0.4)", 0.4, 0.4},
		{"full", 1, 1},
		{"empty", 0, 0},
	} {
		p := mustProcess(t, c.spec, g, 1)
		least, most := 2.0, -1.0
		for k := range g.Edges {
			least, most = min(least, p.Rate(k)), max(most, p.Rate(k))
		}
		if math.Abs(least-c.min) > 1e-12 || math.Abs(most-c.max) > 1e-12 {
			t.Errorf("%s: rates %.4f to %.4f, want %.4f to %.4f", c.spec, least, most, c.min, c.max)
		}
	}
}

func TestSeedsMatter(t *testing.T) {
	g := mustGraph(t, "complete", 10)
	for _, spec := range []string{"one-edge", "one-edge-round-robin", "k-edges(3)", "k-edges-exact(3)",
		"bernoulli(0.2)", "broadcast(0.2)", "broadcast-one", "matching"} {
		a, b := mustProcess(t, spec, g, 1), mustProcess(t, spec, g, 2)
		same := 0
		for k := range 100 {
			if slices.Equal(a.Active(nil, k), b.Active(nil, k)) {
				same++
			}
		}
		if same > 50 {
			t.Errorf("%s: two seeds agree at %d of 100 iterations", spec, same)
		}
	}
}

// On a graph without edges no process has events.
func TestNoEdgesNoEvents(t *testing.T) {
	g := mustGraph(t, "complete", 1)
	for _, spec := range processes {
		p := mustProcess(t, spec, g, 1)
		for k := range 20 {
			if e := p.Active(nil, k); len(e) != 0 {
				t.Errorf("%s at %d: events %v without edges", spec, k, e)
			}
		}
	}
}

func TestEventPeer(t *testing.T) {
	e := Event{Edge: 0, From: 4, To: 2}
	for _, c := range []struct {
		self, peer int
		ok         bool
	}{{4, 2, true}, {2, 4, true}, {0, 0, false}} {
		if peer, ok := e.Peer(c.self); ok != c.ok || ok && peer != c.peer {
			t.Errorf("Peer(%d) = %d, %v", c.self, peer, ok)
		}
	}
}

func TestProcessErrors(t *testing.T) {
	g := mustGraph(t, "ring", 5)
	for _, c := range []struct{ spec, want string }{
		{"one edge", "broadcast-rr"}, {"one-edge(2)", "takes no argument"}, {"bernoulli", "write bernoulli(p)"},
		{"bernoulli(0)", "above 0"}, {"bernoulli(1.01)", "at most 1"}, {"bernoulli(nan)", "finite"},
		{"k-edges(6)", "ring has 5"}, {"k-edges(0)", "more than 0"}, {"k-edges(x)", "finite"},
		{"k-edges-exact(6)", "ring has 5"}, {"k-edges-exact(1.5)", "whole number"}, {"k-edges-exact(0)", "at least 1"},
		{"broadcast(2)", "at most 1"}, {"periodic(0)", "at least 1"}, {"trace(no-such-file)", "cannot read the trace"},
	} {
		p, err := ParseProcess(c.spec, g, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) || p != nil {
			t.Errorf("%s: %v, error %v, want one with %q", c.spec, p, err, c.want)
		}
	}
}

func TestNegativeIterationPanics(t *testing.T) {
	g := mustGraph(t, "ring", 5)
	for _, spec := range processes {
		p := mustProcess(t, spec, g, 1)
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "dist: ") {
					t.Errorf("%s at -1: panic %v", spec, r)
				}
			}()
			p.Active(nil, -1)
		}()
	}
}

// Many goroutines that use one process get the same events as one.
func TestProcessesAreSafeForConcurrentUse(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	for _, spec := range processes {
		p := mustProcess(t, spec, g, 5)
		want := make([][]Event, 100)
		for k := range want {
			want[k] = slices.Clone(p.Active(nil, k))
		}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				var dst []Event
				for k := range want {
					k = (k + 25*w) % len(want)
					if dst = p.Active(dst, k); !slices.Equal(dst, want[k]) {
						t.Errorf("%s at %d: %v, want %v", spec, k, dst, want[k])
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

func FuzzParseProcess(f *testing.F) {
	for _, s := range processKinds {
		f.Add(s.Form.String())
	}
	for _, s := range processes {
		f.Add(s)
	}
	f.Add("bernoulli(1e-320)")
	f.Add("periodic(99999999999999999999)")
	g := mustGraph(f, "er10-published", 10)
	f.Fuzz(func(t *testing.T, spec string) {
		if strings.Contains(spec, "trace") || strings.Contains(spec, "arcs") { // no file access
			return
		}
		p, err := ParseProcess(spec, g, 3)
		if err != nil {
			return
		}
		again, err := ParseProcess(p.String(), g, 3)
		if err != nil || again.String() != p.String() || !slices.Equal(again.Active(nil, 5), p.Active(nil, 5)) {
			t.Errorf("%q became %q, which gives %v, %v", spec, p, again, err)
		}
	})
}

func BenchmarkActive(b *testing.B) {
	g := mustGraph(b, "er10-published", 10)
	for _, spec := range processes {
		p := mustProcess(b, spec, g, 1)
		b.Run(spec, func(b *testing.B) {
			dst := make([]Event, 0, len(g.Edges))
			k := 0
			for b.Loop() {
				dst = p.Active(dst, k)
				k++
			}
		})
	}
}
