package dist

import "testing"

func TestPeriodic(t *testing.T) {
	g := mustGraph(t, "ring", 5)
	p := mustProcess(t, "periodic(3)", g, 1)
	for k, want := range []int{0, 0, 5, 0, 0, 5, 0} {
		if got := len(p.Active(nil, k)); got != want {
			t.Errorf("periodic(3) at %d: %d edges, want %d", k, got, want)
		}
	}
}

func TestFullAndEmpty(t *testing.T) {
	g := mustGraph(t, "ring", 5)
	all, none := mustProcess(t, "full", g, 1), mustProcess(t, "empty", g, 1)
	for k := range 5 {
		events := all.Active(nil, k)
		if len(events) != 5 || len(none.Active(nil, k)) != 0 {
			t.Fatalf("at %d: full %v, empty %v", k, events, none.Active(nil, k))
		}
		for m, e := range events {
			if (Edge{e.From, e.To}) != g.Edges[m] || e.Edge != m {
				t.Errorf("event %d is %+v, want edge %v", m, e, g.Edges[m])
			}
		}
	}
}
