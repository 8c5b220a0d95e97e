package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// warned reports whether a setup has a warning with a text.
func warned(s *Setup, text string) bool {
	return slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// Whether gossip diverges is judged by the edges that are active together: a process that plays all
// edges whenever it plays any is refused where full is, whatever its name, and disjoint pairs are never
// warned about.
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

// c_max auto follows the declared slowness; a run in which the limit biases an agent says so, and one
// in which it does not says nothing.
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
		if got := s.Config.CMax; got.Auto || got.V != c.limit || warned(s, "limited to c_max") != c.warned {
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

// The printed theta of CHOCO-SGD in figure 2 is refused with the printed probability, and accepted with
// that of the scripts.
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
