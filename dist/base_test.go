package dist

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// averaged applies the rounds of a process to the unit vectors and returns the distance of the
// product from the exact mean, in the Frobenius norm. It checks every round: at most k edges at an
// agent, and weights between 0 and 1 that leave a share of at least 0 to the agent itself.
func averaged(t *testing.T, spec string, n, k, rounds int) float64 {
	t.Helper()
	g := mustGraph(t, spec, n)
	p := mustProcess(t, spec, g, 1)
	x := make([][]float64, n)
	for i := range x {
		x[i] = make([]float64, n)
		x[i][i] = 1
	}
	for it := range rounds {
		at, sum := make([]int, n), make([]float64, n)
		next := make([][]float64, n)
		for i := range x {
			next[i] = slices.Clone(x[i])
		}
		for _, e := range p.Active(nil, it) {
			w := p.Weight(e, it)
			if w <= 0 || w > 1 || w != p.Weight(Event{e.Edge, e.To, e.From}, it) {
				t.Fatalf("%s, n=%d: weight %v", spec, n, w)
			}
			for _, i := range []int{e.From, e.To} {
				at[i]++
				sum[i] += w
			}
			for c := range n {
				d := w * (x[e.From][c] - x[e.To][c])
				next[e.From][c] -= d
				next[e.To][c] += d
			}
		}
		for i := range at {
			if at[i] > k || sum[i] > 1+1e-12 {
				t.Fatalf("%s, n=%d, round %d: agent %d has %d edges of total weight %v", spec, n, it, i, at[i], sum[i])
			}
		}
		x = next
	}
	sq := 0.0
	for i := range x {
		for _, v := range x[i] {
			sq += (v - 1/float64(n)) * (v - 1/float64(n))
		}
	}
	return math.Sqrt(sq)
}

func roundsOf(t *testing.T, name string, n, k int) int {
	t.Helper()
	c, ok := cycles[name](n, k)
	if !ok {
		t.Fatalf("no %s(%d) of %d agents", name, k, n)
	}
	return len(c)
}

// After all rounds every agent has the exact mean, for 2 to 60 agents and one to five edges at an
// agent.
func TestCyclesAverageExactly(t *testing.T) {
	for n := 2; n <= 60; n++ {
		for k := 1; k <= 5; k++ {
			for name := range cycles {
				if name == "hyper-hypercube" && smoothPart(n, k) != n {
					continue
				}
				spec := fmt.Sprintf("%s(%d)", name, k)
				if e := averaged(t, spec, n, k, roundsOf(t, name, n, k)); e > 1e-14 {
					t.Errorf("%s of %d agents is %g from the mean", spec, n, e)
				}
			}
		}
	}
}

// The numbers of rounds are those of the published program.
func TestCycleLengths(t *testing.T) {
	for n, want := range map[int][4]int{5: {5, 3, 3, 1}, 6: {4, 2, 2, 2}, 7: {5, 4, 3, 3}, 10: {6, 4, 4, 2}, 16: {4,
		4, 2, 2},
		23: {9, 6, 5, 4}, 25: {9, 6, 5, 2}, 33: {11, 6, 5, 5}, 60: {9, 6, 5, 3}} {
		for k, length := range want {
			if got := roundsOf(t, "base", n, k+1); got != length {
				t.Errorf("base(%d) of %d agents has %d rounds, want %d", k+1, n, got, length)
			}
		}
	}
	for _, c := range [][3]int{{6, 1, 5}, {10, 1, 7}, {10, 2, 5}, {33, 2, 7}, {33, 3, 6}, {60, 1, 11}, {60, 2, 8},
		{60, 3, 6}} {
		if got := roundsOf(t, "simple-base", c[0], c[1]); got != c[2] {
			t.Errorf("simple-base(%d) of %d agents has %d rounds, want %d", c[1], c[0], got, c[2])
		}
	}
	// the logarithm of 243 to the base 3 is below 5 in floating point
	if e := averaged(t, "simple-base(2)", 244, 2, roundsOf(t, "simple-base", 244, 2)); e > 1e-13 {
		t.Errorf("simple-base(2) of 244 agents is %g from the mean", e)
	}
}

// Rounds of the published program, spelled out: edges and weights.
func TestCyclesSpelledOut(t *testing.T) {
	for _, c := range []struct {
		spec string
		n    int
		want string
	}{
		{"base(1)", 5, "01:0.5 23:0.5 | 02:0.5 13:0.5 | 01:0.5 34:0.8 | 01:0.5 23:0.5 | 02:0.5 13:0.5"},
		{"base(1)", 6, "01:0.5 34:0.5 | 12:0.667 45:0.667 | 01:0.5 34:0.5 | 03:0.5 14:0.5 25:0.5"},
		{"base(2)", 5, "01:0.333 02:0.333 12:0.333 34:0.5 | 14:0.6 23:0.6 | 01:0.333 02:0.333 12:0.333 34:0.5"},
		{"hyper-hypercube(2)", 6, "01:0.5 23:0.5 45:0.5 | 02:0.333 04:0.333 13:0.333 15:0.333 24:0.333 35:0.333"},
	} {
		p := mustProcess(t, c.spec, mustGraph(t, c.spec, c.n), 1)
		var all []string
		for it := range strings.Count(c.want, "|") + 1 {
			var round []string
			for _, e := range p.Active(nil, it) {
				round = append(round, fmt.Sprintf("%d%d:%.3g", e.From, e.To, p.Weight(e, it)))
			}
			all = append(all, strings.Join(round, " "))
		}
		if got := strings.Join(all, " | "); got != c.want {
			t.Errorf("%s of %d agents is %s, want %s", c.spec, c.n, got, c.want)
		}
	}
}

// The cycles keep the contract of every process.
func TestCyclesAreProcesses(t *testing.T) {
	for _, spec := range []string{"base(2)", "simple-base(1)", "hyper-hypercube(4)"} {
		t.Run(spec, func(t *testing.T) {
			if p, ok := ProcessOfGraph(" " + spec); !ok || p != spec {
				t.Errorf("the process of graph %s is %q, %v", spec, p, ok)
			}
			g := mustGraph(t, spec, 10)
			checkProcess(t, g, spec)
			for k := range g.Edges {
				if rate := mustProcess(t, spec, g, 1).Rate(k); rate <= 0 || rate > 1+1e-12 {
					t.Errorf("edge %d has the rate %v", k, rate)
				}
			}
		})
	}
	if p, ok := ProcessOfGraph("ring"); ok {
		t.Errorf("graph ring has the process %q", p)
	}
}

func TestCycleErrors(t *testing.T) {
	for _, c := range []struct {
		spec string
		n    int
		want string
	}{{"base(0)", 5, "at least 1"}, {"base", 5, "write base(k)"}, {"hyper-hypercube(2)", 10, "base(2)"}} {
		if _, err := ParseGraph(c.spec, c.n, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %d agents: error %v, want one with %q", c.spec, c.n, err, c.want)
		}
	}
	if _, err := ParseProcess("base(1)", mustGraph(t, "ring", 5), 1); err == nil ||
		!strings.Contains(err.Error(), "use graph base(1)") {
		t.Errorf("base(1) on a ring: %v", err)
	}
	for _, spec := range []string{"base(1)", "base(1000000000)", "simple-base(3)"} { // a single agent has no edges
		if p := mustProcess(t, spec, mustGraph(t, spec, 1), 1); len(p.Active(nil, 7)) != 0 {
			t.Errorf("%s of one agent has edges", spec)
		}
	}
}

// The weights of the rounds reach the agents in place of Metropolis weights.
func TestActiveMixingOfCycles(t *testing.T) {
	p := mustProcess(t, "base(1)", mustGraph(t, "base(1)", 5), 1)
	w := NewActiveMixing(p, 5)
	events := p.Active(nil, 2)
	w.Set(events, 2) // 01 (1/2), 34 (0.8)
	if a, b := w.Event(0), w.Event(1); a != 0.5 || math.Abs(b-0.8) > 1e-15 || math.Abs(w.Self(4)-0.2) > 1e-15 {
		t.Errorf("weights %v, %v and %v of agent 4 itself", a, b, w.Self(4))
	}
}
