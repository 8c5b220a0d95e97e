package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits of the drawn graph.
const (
	maxLabelled   = 50   // agents that still get their number
	maxDrawnEdges = 3000 // more would be a black disc, and a heavy page
)

// maxOnCircle is for how many agents a circle has room.
const maxOnCircle = 120

// graph draws the agents and the edges of the base graph, whose name it takes, between them: on a
// circle, agent 0 on top and the others clockwise, and where they are many or the graph is a
// lattice, in rows. It is nil if there are no agents.
func (s *shards) graph(name string) *drawing {
	n := len(s.Agents)
	if n == 0 {
		return nil
	}
	d := &drawing{w: 360, h: 340}
	d.alt = fmt.Sprintf("Graph of %d agents and %d edges.", n, len(s.Edges))
	at, rows := circle(n, point{180, 160}, 142), lattice(name)
	if rows || n > maxOnCircle {
		at = inRows(n, rows, point{16, 12}, point{344, 308})
	}
	edgeStyle := "v-edge"
	if len(s.Edges) > 150 {
		edgeStyle = "v-thin"
	}
	if len(s.Edges) <= maxDrawnEdges {
		for _, e := range s.Edges {
			d.line(edgeStyle, at[e[0]], at[e[1]])
		}
	} else {
		d.text("v-note", 180, 334, middle, fmt.Sprintf("%d edges: too many to draw", len(s.Edges)))
	}
	degree := s.degrees()
	for i, p := range at {
		m := mark{kind: disc, style: "v-node", at: []point{p}, r: 14, tip: fmt.Sprintf("agent %d, degree %d", i,
			degree[i])}
		if n > 24 {
			m.r = 10
		}
		if n > maxLabelled {
			m.style, m.r = "v-dot1", math.Max(2, math.Min(4, 400/float64(n)))
		}
		d.add(m)
		if n <= maxLabelled {
			d.text("v-name", p.x, p.y+4, middle, strconv.Itoa(i))
		}
	}
	return d
}

// circle returns n points on a circle, the first on top, clockwise; a single one stands in the
// centre.
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

// lattice reports whether agents of the graph stand in rows and columns.
func lattice(name string) bool {
	return strings.HasPrefix(name, "grid") || strings.HasPrefix(name, "torus")
}

// inRows returns n points in rows between two corners: those of a lattice as it is built, in as
// many rows as the divisor nearest to the root of n; others in rows that turn like a snake, so that
// neighbours by number stay neighbours.
func inRows(n int, lattice bool, from, to point) []point {
	w, h := to.x-from.x, to.y-from.y
	rows := max(1, int(math.Round(math.Sqrt(float64(n)*h/w))))
	if lattice {
		for rows = max(1, int(math.Sqrt(float64(n)))); n%rows != 0; rows-- {
		}
	}
	across := (n + rows - 1) / rows
	at := make([]point, n)
	for i := range at {
		r, c := i/across, i%across
		if !lattice && r%2 == 1 {
			c = across - 1 - c
		}
		at[i] = point{from.x + w*(float64(c)+0.5)/float64(across), from.y + h*(float64(r)+0.5)/float64(rows)}
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
