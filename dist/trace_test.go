package dist

import (
	"slices"
	"strings"
	"testing"
)

func TestTrace(t *testing.T) {
	g := mustGraph(t, "ring", 4) // edges (0,1) (0,3) (1,2) (2,3)
	spec := "trace(" + writeFile(t, "# t i j\n4 3 0\n0 1 2\n4 1 2 # same t, smaller agents later\n1 0 1\n") + ")"
	p := mustProcess(t, spec, g, 1)
	if p.String() != spec {
		t.Errorf("String %q, want %q", p, spec)
	}
	want := map[int][]Event{
		0: {{Edge: 2, From: 1, To: 2}},
		1: {{Edge: 0, From: 0, To: 1}},
		4: {{Edge: 1, From: 3, To: 0}, {Edge: 2, From: 1, To: 2}},
	}
	var got []Event
	for k := range 8 {
		if got = p.Active(got, k); !slices.Equal(got, want[k]) {
			t.Errorf("at %d: %v, want %v", k, got, want[k])
		}
	}
	for k, rate := range []float64{0.2, 0.2, 0.4, 0} { // of five iterations
		if p.Rate(k) != rate {
			t.Errorf("rate of edge %d is %v, want %v", k, p.Rate(k), rate)
		}
	}
}

func TestEmptyTrace(t *testing.T) {
	p := mustProcess(t, "trace("+writeFile(t, "# nothing\n")+")", mustGraph(t, "ring", 4), 1)
	if got := p.Active(nil, 0); len(got) != 0 || p.Rate(0) != 0 {
		t.Errorf("events %v at rate %v", got, p.Rate(0))
	}
}

func TestTraceErrors(t *testing.T) {
	g := mustGraph(t, "ring", 4)
	for _, c := range []struct{ text, want string }{
		{"0 0 1\n0 0\n", "list.txt:2: 2 numbers, want 3"},
		{"0 0 2\n", "list.txt:1: (0,2) is not an edge of the graph ring of 4 agents"},
		{"-1 0 1\n", "list.txt:1: iteration -1"},
		{"9223372036854775807 0 1\n", "list.txt:1: iteration"},
		{"99999999999999999999 0 1\n", "not a whole number"},
		{"3 0 1\n3 1 0\n", "list.txt:2: edge (1,0) was already active"},
		{"3 0 9\n", "(0,9) is not an edge"},
	} {
		p, err := ParseProcess("trace("+writeFile(t, c.text)+")", g, 1)
		if err == nil || p != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.text, err, c.want)
		}
	}
}
