package web

import (
	"fmt"
	"math"
	"strconv"
)

// Limits of the drawn graph.
const (
	mostNames = 50   // agents that still get their number
	mostEdges = 3000 // more would be a black disc, and a heavy page
)

// graph draws the agents on a circle, agent 0 on top and the others clockwise, and the edges of the base graph between them. It
// is nil if there are no agents.
func (s *shards) graph() *drawing {
	n := len(s.Agents)
	if n == 0 {
		return nil
	}
	d := &drawing{w: 360, h: 340}
	d.alt = fmt.Sprintf("Graph of %d agents and %d edges.", n, len(s.Edges))
	at := circle(n, point{180, 170}, 145)
	edgeStyle := "v-edge"
	if len(s.Edges) > 150 {
		edgeStyle = "v-thin"
	}
	if len(s.Edges) <= mostEdges {
		for _, e := range s.Edges {
			d.line(edgeStyle, at[e[0]], at[e[1]])
		}
	} else {
		d.text("v-note", 180, 174, middle, fmt.Sprintf("%d edges: too many to draw", len(s.Edges)))
	}
	degree := s.degrees()
	for i, p := range at {
		m := mark{kind: disc, style: "v-node", at: []point{p}, r: 14, tip: fmt.Sprintf("agent %d, degree %d", i, degree[i])}
		if n > 24 {
			m.r = 10
		}
		if n > mostNames {
			m.style, m.r = "v-dot1", math.Max(1, math.Min(4, 400/float64(n)))
		}
		d.add(m)
		if n <= mostNames {
			d.text("v-name", p.x, p.y+4, middle, strconv.Itoa(i))
		}
	}
	return d
}

// circle returns n points on a circle, the first on top, clockwise; a single one stands in the centre.
func circle(n int, centre point, r float64) []point {
	if n == 1 {
		return []point{centre}
	}
	at := make([]point, n)
	for i := range at {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		at[i] = point{centre.x + r*sin, centre.y - r*cos}
	}
	return at
}

// degrees counts the edges at each agent.
func (s *shards) degrees() []int {
	degree := make([]int, len(s.Agents))
	for _, e := range s.Edges {
		degree[e[0]]++
		degree[e[1]]++
	}
	return degree
}
