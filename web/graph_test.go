package web

import (
	"math"
	"testing"
)

func TestGraph(t *testing.T) {
	s := &shards{Agents: make([][]int, 4), Edges: [][]int{{0, 1}, {1, 2}, {3, 1}}}
	d := s.graph("")
	nodes, edges := find(d, "v-node"), find(d, "v-edge")
	if len(nodes) != 4 || len(edges) != 3 || len(find(d, "v-name")) != 4 {
		t.Fatalf("%d nodes, %d edges", len(nodes), len(edges))
	}
	if nodes[1].tip != "agent 1, degree 3" || edges[2].at[0] != nodes[3].at[0] || edges[2].at[1] != nodes[1].at[0] {
		t.Errorf("node %+v, edge %+v", nodes[1], edges[2])
	}
	checkTexts(t, "graph", d)
	if (&shards{}).graph("") != nil {
		t.Error("the graph of no agents is not nil")
	}
}

func TestGraphLarge(t *testing.T) {
	s := &shards{Agents: make([][]int, 100)}
	for i := range 100 {
		for j := range i {
			s.Edges = append(s.Edges, []int{i, j})
		}
	}
	d := s.graph("")
	if len(find(d, "v-dot1")) != 100 || len(find(d, "v-thin")) != 0 || len(find(d, "v-note")) != 1 {
		t.Error("too many edges were drawn, or no agents")
	}
	s.Edges = s.Edges[:2000]
	if d := s.graph(""); len(find(d, "v-thin")) != 2000 {
		t.Error("edges are missing")
	}
	s = &shards{Agents: make([][]int, 40)}
	checkTexts(t, "40 agents", s.graph(""))
}

func TestCircle(t *testing.T) {
	if at := circle(1, point{5, 6}, 9); at[0] != (point{5, 6}) {
		t.Errorf("one point at %v", at[0])
	}
	at := circle(4, point{0, 0}, 2)
	for i, want := range []point{{0, -2}, {2, 0}, {0, 2}, {-2, 0}} { // from the top, clockwise
		if math.Hypot(at[i].x-want.x, at[i].y-want.y) > 1e-12 {
			t.Errorf("point %d at %v, want %v", i, at[i], want)
		}
	}
}

// Lattices and large graphs are placed in rows, at distinct points, with consecutive agents
// adjacent.
func TestInRows(t *testing.T) {
	for _, c := range []struct {
		n, across int
		lattice   bool
	}{{1000, 40, true}, {9, 3, true}, {7, 7, true}, {1000, 32, false}} {
		at := inRows(c.n, c.lattice, point{0, 0}, point{300, 300})
		seen := map[point]bool{}
		for i, p := range at {
			if seen[p] || p.x <= 0 || p.x >= 300 || p.y <= 0 || p.y >= 300 {
				t.Fatalf("%d agents: agent %d at %v", c.n, i, p)
			}
			seen[p] = true
		}
		if c.n > c.across {
			same, next := at[0], at[c.across]
			if !c.lattice {
				same = at[c.across-1]
			}
			if math.Abs(next.x-same.x) > 1e-9 || next.y <= same.y {
				t.Errorf("%d agents: agent %d at %v", c.n, c.across, next)
			}
		}
	}
}
