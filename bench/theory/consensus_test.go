package theory

import "testing"

// Base graphs average exactly in the published number of rounds and not before; other graphs do
// not.
func TestConsensus(t *testing.T) {
	for _, row := range publishedRounds[:5] {
		for k, want := range row.rounds {
			spec := "base(" + string(rune('1'+k)) + ")"
			c, err := MeasureConsensus(spec, spec, row.n, 3*want, exactly)
			if err != nil || c.Rounds != want || c.MaxDegree > k+1 {
				t.Errorf("%s of %d agents: %+v, want %d rounds; %v", spec, row.n, c, want, err)
			}
		}
	}
	for _, g := range []struct {
		graph, process string
		n, rounds      int
	}{{"complete", "full", 7, 1}, {"exponential", "one-peer-exp", 8, 3}, {"exponential", "one-peer-exp", 7, 0},
		{"ring", "full", 5, 0}} {
		if c, err := MeasureConsensus(g.graph, g.process, g.n, 12, exactly); err != nil || c.Rounds != g.rounds {
			t.Errorf("%s, %s, %d agents: %+v, %v", g.graph, g.process, g.n, c, err)
		}
	}
	if _, err := MeasureConsensus("base(0)", "base(0)", 5, 10, exactly); err == nil {
		t.Error("base(0) is taken")
	}
}
