package train

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// methodRow is a line of the table of docs/methods.md.
type methodRow struct{ name, bits, vectors, graphs string }

// methodRows reads the table from the documentation.
func methodRows(t *testing.T) (rows []methodRow) {
	t.Helper()
	text, err := os.ReadFile("../docs/methods.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) == 7 && strings.HasPrefix(line, "| `") {
			rows = append(rows, methodRow{strings.Trim(cells[0], "| `"), cells[2], cells[3], cells[5]})
		}
	}
	return rows
}

// configOf is a configuration of a method: that of its first line in the table of all algorithms.
func configOf(t *testing.T, name string) Config {
	t.Helper()
	if pair, ok := synonyms[name]; ok {
		c := small()
		pair.name(&c)
		return c
	}
	at := slices.IndexFunc(lines, func(l line) bool { return l.config().Algo == name })
	if at < 0 {
		t.Fatalf("%s has no line in the table of all algorithms", name)
	}
	return lines[at].config()
}

// Every cell of docs/methods.md that says what a method needs, costs or can do is true of a short
// run of it: in one process, resumed, in virtual time, with the clock real, over many agents'
// networks, on the graphs that it names and on those that it does not.
func TestEveryCellOfMethods(t *testing.T) {
	rows := methodRows(t)
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	want := slices.DeleteFunc(Algorithms(), func(name string) bool { return name == exampleMethod })
	if !slices.Equal(names, want) {
		t.Fatalf("docs/methods.md has the methods %v, want %v", names, want)
	}
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := configOf(t, row.name)
			c.Iterations, c.EvalPoints, c.Batch, c.Warmup = 20, 2, min(c.Batch, 4), 0
			one := play(t, c, Options{})
			checkClocks(t, c, one)
			checkCells(t, row, c, one)
			if os.Getenv("FSPDA_LONG") != "" || i%9 == 0 { // TestTableResumes takes all, with forms
				checkResumed(t, c, row.name, trace(t, one))
			}
			if os.Getenv("FSPDA_LONG") != "" || i%9 == 4 { // TestProcessesEqualOneProcess takes others
				w := &processes{t: t, c: c, name: "cells-" + row.name}
				if withoutWireBytes(t, w.run(nil)) != withoutWireBytes(t, one) {
					t.Error("over many machines it is another run")
				}
			}
		})
	}
}

// checkClocks runs in virtual time, and asks for real time.
func checkClocks(t *testing.T, c Config, one *Result) {
	t.Helper()
	timed, real := c, c
	timed.Links = withLinks(t, wan)
	s, m := resolve(t, c)
	if base := Default(); s.Asynchronous() {
		timed.ComputeTime, timed.Slowness = base.ComputeTime, base.Slowness
		real.ComputeTime, real.Slowness = base.ComputeTime, base.Slowness
	}
	r := play(t, timed, Options{})
	if !(r.Rows[len(r.Rows)-1].Time > 0) || !s.Asynchronous() && untimed(t, r) != untimed(t, one) {
		t.Error("in virtual time it takes no time, or is another run")
	}
	real.Clock = "real"
	_, err := real.Resolve(labSet, m)
	if said := s.Traits.RealTime != nil; said != (err == nil) || err != nil && !strings.Contains(err.Error(), "clock") {
		t.Errorf("its traits say of real time %v, and with clock real the error is %v", said, err)
	}
}

// checkCells compares vectors, graphs and bits.
func checkCells(t *testing.T, row methodRow, c Config, one *Result) {
	t.Helper()
	s, m := resolve(t, c)
	cell := row.vectors
	if form, ok := s.Config.Params["form"]; ok && form == "atc" {
		_, cell, _ = strings.Cut(cell, "form atc ")
	}
	edged, names := s.Traits.EdgeVectors != nil, s.Traits.Aux
	if n := len(names); !edged && !strings.Contains(cell, ";") && !strings.Contains(cell, ",") && cell[0] !=
		byte('0'+n) {
		t.Errorf("the table says %q vectors, it has %v", row.vectors, names)
	}
	for cell, bad := range map[string]func(c *Config){
		"trees":     func(c *Config) { c.Graph = "ring" },
		"directed":  func(c *Config) { c.Edges = "one-edge" },
		"all edges": func(c *Config) { c.Edges = "one-edge" },
		"pairs":     func(c *Config) { c.Edges = "full" },
		"broadcast": func(c *Config) { c.Edges = "one-edge" },
		"clock on":  func(c *Config) { c.Edges = "full" },
		"none": func(c *Config) { // said, and without effect
			if err := c.Parse("run.yaml", []byte("edges: matching")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if !strings.Contains(row.graphs, cell) || strings.Contains(row.graphs, "in "+cell) {
			continue
		}
		wrong := c
		bad(&wrong)
		if _, err := wrong.Resolve(labSet, m); err == nil {
			t.Errorf("the table says %q, and graph %s with edges %s is accepted", row.graphs, wrong.Graph, wrong.Edges)
		}
	}
	if strings.HasPrefix(row.graphs, "any graph and process") {
		for _, edges := range []string{"one-edge", "matching", "bernoulli(0.3)", "full"} {
			other := c
			other.Graph, other.Edges, other.Gamma, other.Dual = "star", edges, 0.2, "same-time"
			if c.Gamma == Default().Gamma {
				other.Gamma = c.Gamma
			}
			if _, err := other.Resolve(labSet, m); err != nil && !strings.Contains(err.Error(),
				"stable region") {
				t.Errorf("edges %s on a star: %v", edges, err)
			}
		}
	}
	if want := cellBits(row.bits, s); want > 0 && one.Rows[len(one.Rows)-1].BitsSharedSeed != want {
		t.Errorf("the table says %s bits, which is %d in all; it sent %d", row.bits, want,
			one.Rows[len(one.Rows)-1].BitsSharedSeed)
	}
}

// cellBits evaluates a formula of docs/methods.md over all iterations; 0: it is no formula of n,
// |E_t|, v, k and d alone.
func cellBits(formula string, s *Setup) (bits uint64) {
	whole, rounds := strings.CutSuffix(strings.ReplaceAll(formula, `\|`, "|"), " a round")
	n, d, k, v := uint64(s.Graph.N), uint64(s.Dim), uint64(s.Mask.Len()), uint64(32)
	length := s.RoundLength()
	if length > 1 && !rounds || length > s.Config.Iterations || strings.Contains(s.Algo.Name(), "storm") ||
		s.Asynchronous() {
		return 0
	}
	for t := range s.Config.Iterations {
		edges := uint64(len(s.Process.Active(nil, t)))
		if (t+1)%length != 0 {
			continue
		}
		switch whole {
		case "2·v·k·|E_t|":
			bits += edges * 2 * v * k
		case "2·v·d·|E_t|":
			bits += edges * 2 * v * d
		case "4·v·d·|E_t|":
			bits += edges * 4 * v * d
		case "2·(n-1)·v·d":
			bits += 2 * (n - 1) * v * d
		case "2·(n-1)·v·k":
			bits += 2 * (n - 1) * v * k
		}
	}
	return bits
}
