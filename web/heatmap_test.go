package web

import (
	"strings"
	"testing"
)

func TestHeatMap(t *testing.T) {
	s := &shards{Classes: 3, Agents: [][]int{{5, 0, 10}, {1, 2, 9}}}
	d := s.heatMap()
	cells := find(d, "v-cell")
	if len(cells) != 5 { // an empty cell is not drawn
		t.Fatalf("%d cells, want 5", len(cells))
	}
	if cells[0].level != 0.5 || cells[1].level != 1 || cells[0].tip != "agent 0, class 0: 5" {
		t.Errorf("cells %+v", cells[:2])
	}
	if n := len(find(d, "v-count")) + len(find(d, "v-invert")); n != 5 {
		t.Errorf("%d counts, want 5", n)
	}
	checkTexts(t, "heat map", d)
	for _, none := range []*shards{{}, {Classes: 3}, {Agents: [][]int{{}}}} {
		if none.heatMap() != nil {
			t.Errorf("%+v: the heat map is not nil", none)
		}
	}
}

// With and without merging, the cells sum up to all examples.
func TestHeatMapBinned(t *testing.T) {
	s := &shards{Classes: 250, Agents: make([][]int, 101)}
	total := 0
	for i := range s.Agents {
		s.Agents[i] = make([]int, 250)
		for c := range s.Agents[i] {
			s.Agents[i][c] = i + c
			total += i + c
		}
	}
	g := s.binned()
	if len(g.counts) != 51 || len(g.counts[0]) != 84 || g.writeCounts {
		t.Fatalf("%d by %d cells, want 51 by 84", len(g.counts), len(g.counts[0]))
	}
	for _, row := range g.counts {
		for _, n := range row {
			total -= n
		}
	}
	if total != 0 {
		t.Errorf("%d examples are missing from the cells", total)
	}
	d := s.heatMap()
	checkTexts(t, "binned", d)
	cells := find(d, "v-cell")
	if tip := cells[0].tip; !strings.HasPrefix(tip, "agents 0 to 1, classes 0 to 2: ") {
		t.Errorf("tip %q", tip)
	}
	if tip := cells[len(cells)-1].tip; !strings.HasPrefix(tip, "agent 100, class 249: ") {
		t.Errorf("tip %q", tip)
	}
}
