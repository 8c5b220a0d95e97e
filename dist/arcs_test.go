package dist

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func mustDirected(t *testing.T, spec, graph string, n int) Directed {
	t.Helper()
	d, ok := mustProcess(t, spec, mustGraph(t, graph, n), 3).(Directed)
	if !ok || !OneWay(spec) {
		t.Fatalf("%s has no arcs", spec)
	}
	return d
}

// shares is the column stochastic matrix of iteration t.
func shares(d Directed, n, t int) [][]float64 {
	out := make([]int, n)
	for _, a := range d.Arcs(nil, t) {
		out[a.From]++
	}
	p := make([][]float64, n)
	for i := range p {
		p[i] = make([]float64, n)
		p[i][i] = 1 / float64(1+out[i])
	}
	for _, a := range d.Arcs(nil, t) {
		p[a.To][a.From] = 1 / float64(1+out[a.From])
	}
	return p
}

// After one cycle the product of the rounds of one-peer-exp is the mean for powers of two, and as
// far from it as specified for other numbers of agents, in the Frobenius norm.
func TestOnePeerExponential(t *testing.T) {
	for _, c := range []struct {
		n, rounds int
		far       float64
	}{{2, 1, 0}, {16, 4, 0}, {25, 5, 0.350780}, {10, 4, 0.306186}, {7, 3, 0.306186}, {6, 3, 0.353553}} {
		d := mustDirected(t, "one-peer-exp", "one-peer-exp", c.n)
		product := make([][]float64, c.n)
		for i := range product {
			product[i] = make([]float64, c.n)
			product[i][i] = 1
		}
		for round := range c.rounds {
			p, next := shares(d, c.n, round), make([][]float64, c.n)
			for i := range next {
				next[i] = make([]float64, c.n)
				for j := range c.n {
					for k := range c.n {
						next[i][j] += p[i][k] * product[k][j]
					}
				}
			}
			product = next
		}
		sq := 0.0
		for i := range product {
			for _, v := range product[i] {
				sq += math.Pow(v-1/float64(c.n), 2)
			}
		}
		if far := math.Sqrt(sq); math.Abs(far-c.far) > 1e-6 || c.far == 0 && far > 1e-15 {
			t.Errorf("n = %d: %.6f from the mean after %d rounds, want %.6f", c.n, far, c.rounds, c.far)
		}
		if first := d.Arcs(nil, 0); !slices.Equal(first, d.Arcs(nil, c.rounds)) || len(first) != c.n {
			t.Errorf("n = %d: %d arcs, and the cycle is longer than %d", c.n, len(first), c.rounds)
		}
	}
}

// The regular processes have rows that sum to 1; the arcs are on edges, ascending, each edge is as
// often active as Rate says, and ArcRate counts the arcs.
func TestDirectedProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "arcs")
	if err := os.WriteFile(file, []byte("0 1 # a ring one way, and back from 2\n1 2\n2 3\n3 4\n4 0\n2 1\n2 1\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	const n, rounds = 5, 600
	for _, c := range []struct {
		spec    string
		regular bool
	}{{"one-peer-exp", true}, {"static-exp", true}, {"push(1)", false}, {"push(9)", false}, {"arcs(" + file + ")",
		false}} {
		d := mustDirected(t, c.spec, "complete", n)
		g := mustGraph(t, "complete", n)
		if d.Regular() != c.regular || d.String() != c.spec {
			t.Errorf("%s is %s, regular %v", c.spec, d, d.Regular())
		}
		count, arcs := make([]float64, len(g.Edges)), 0
		for it := range rounds {
			all := d.Arcs(nil, it)
			arcs += len(all)
			for k, a := range all {
				if e := g.Edges[a.Edge]; (Edge{min(a.From, a.To), max(a.From, a.To)}) != e || k > 0 &&
					(all[k-1].Edge > a.Edge || all[k-1].Edge == a.Edge && all[k-1].From >= a.From) {
					t.Fatalf("%s at %d: arcs %v", c.spec, it, all)
				}
			}
			for _, e := range d.Active(nil, it) {
				count[e.Edge]++
			}
			for i, row := range shares(d, n, it) {
				sum := 0.0
				for _, v := range row {
					sum += v
				}
				if c.regular && math.Abs(sum-1) > 1e-15 {
					t.Fatalf("%s at %d: row %d sums to %v", c.spec, it, i, sum)
				}
			}
		}
		if got := float64(arcs) / rounds; got != d.ArcRate() {
			t.Errorf("%s: %v arcs an iteration, ArcRate %v", c.spec, got, d.ArcRate())
		}
		for k := range count {
			if got := count[k] / rounds; math.Abs(got-d.Rate(k)) > 0.08 {
				t.Errorf("%s: edge %d is active in %.3f of the iterations, Rate %.3f", c.spec, k, got, d.Rate(k))
			}
		}
	}
}

func TestDirectedErrors(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"0 1\n1 2\n2 0\n": "no way leads from agent 0 to agent 3", "1 0\n2 1\n0 2\n3 0\n": "no way leads from " +
			"agent 0 to agent 3",
		"0 2\n": ":1: (0,2) is not an edge", "0\n": "1 numbers, want 2", "a b\n": "",
	} {
		file := filepath.Join(dir, "arcs")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		graph := "complete"
		if text == "0 2\n" {
			graph = "ring"
		}
		_, err := ParseProcess("arcs("+file+")", mustGraph(t, graph, 4), 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for _, spec := range []string{"one-peer-exp", "static-exp"} {
		if _, err := ParseProcess(spec, mustGraph(t, "ring", 8), 1); err == nil ||
			!strings.Contains(err.Error(), "push(1)") {
			t.Errorf("%s on a ring: error %v", spec, err)
		}
	}
	for _, spec := range []string{"push", "push(0)", "push(x)", "arcs(/no/such/file)"} {
		if _, err := ParseProcess(spec, mustGraph(t, "ring", 8), 1); err == nil {
			t.Errorf("%s was accepted", spec)
		}
	}
	one := mustDirected(t, "one-peer-exp", "complete", 1)
	if len(one.Arcs(nil, 3)) != 0 || one.ArcRate() != 0 {
		t.Error("a single agent sends")
	}
}
