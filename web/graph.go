package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits of the drawn graph.
const (
	maxLabelled   = 50   // agents up to which their numbers are drawn
	maxDrawnEdges = 3000 // beyond that edges are not drawn
)

// maxOnCircle is the number of agents up to which they are placed on a circle.
const maxOnCircle = 120

// graph draws the agents and the edges of the base graph of that name. Agents are placed on a
// circle, agent 0 at the top and the others clockwise; lattices and large graphs are placed in
// rows. The result is nil if there are no agents.
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

// circle returns n points on a circle, clockwise from the top. A single point is the centre.
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

// lattice reports whether the graph of that name is a grid or a torus.
func lattice(name string) bool {
	return strings.HasPrefix(name, "grid") || strings.HasPrefix(name, "torus")
}

// inRows returns n points in rows between two corners. A lattice has as many rows as the largest
// divisor of n up to √n, as the graph itself. Otherwise every other row runs backwards, so that
// consecutive agents are adjacent.
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
