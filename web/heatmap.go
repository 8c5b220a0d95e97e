package web

import (
	"fmt"
	"math"
	"strconv"
)

// Limits of the heat map. Above maxCells rows or columns, neighbouring ones are merged. Up to
// maxCounts classes, counts are printed in the cells.
const (
	maxCells  = 100
	maxCounts = 12
)

// heatMap draws how many examples of each class each agent holds: a row for each agent, a column
// for each class. It returns nil if there is nothing to draw.
func (s *shards) heatMap() *drawing {
	if len(s.Agents) == 0 || s.Classes == 0 {
		return nil
	}
	g := s.binned()
	left, top, right := 62.0, 38.0, chartW-edge
	cellW := (right - left) / float64(len(g.counts[0]))
	cellH := math.Max(3, math.Min(30, 420/float64(len(g.counts))))
	d := &drawing{w: chartW, h: top + cellH*float64(len(g.counts)) + edge}
	d.alt = fmt.Sprintf("Examples of each of %d classes at each of %d agents.", s.Classes, len(s.Agents))
	d.text("v-label", (left+right)/2, 14, middle, "class")
	d.add(mark{kind: upright, style: "v-label", at: []point{{16, (top + d.h - edge) / 2}}, align: middle,
		text: "agent"})
	g.sides(d, left, top, cellW, cellH)
	for r, row := range g.counts {
		for c, n := range row {
			g.cell(d, r, c, rect(left+float64(c)*cellW, top+float64(r)*cellH, cellW, cellH), n)
		}
	}
	d.add(mark{kind: polygon, style: "v-frame", at: rect(left, top, right-left, d.h-edge-top)})
	return d
}

// grid is the counts of shards, with neighbouring rows and columns merged.
type grid struct {
	counts            [][]int
	agents, classes   int // merged into one row, into one column
	nAgents, nClasses int // total
	most              int
	writeCounts       bool
}

// binned merges neighbouring agents and classes if there are more than can be drawn.
func (s *shards) binned() *grid {
	g := &grid{nAgents: len(s.Agents), nClasses: s.Classes}
	g.agents, g.classes = groups(g.nAgents), groups(g.nClasses)
	g.counts = make([][]int, (g.nAgents+g.agents-1)/g.agents)
	for i, row := range s.Agents {
		r := i / g.agents
		if g.counts[r] == nil {
			g.counts[r] = make([]int, (g.nClasses+g.classes-1)/g.classes)
		}
		for c, n := range row {
			g.counts[r][c/g.classes] += n
			g.most = max(g.most, g.counts[r][c/g.classes])
		}
	}
	g.writeCounts = len(g.counts[0]) <= maxCounts && len(g.counts) <= 30 && g.most < 1e5
	return g
}

// groups returns how many of n neighbours are merged into one cell.
func groups(n int) int { return (n + maxCells - 1) / maxCells }

// sides labels rows and columns, at distances that keep labels apart.
func (g *grid) sides(d *drawing, left, top, cellW, cellH float64) {
	every := int(math.Ceil(16 / cellH))
	for r := 0; r < len(g.counts); r += every {
		d.text("v-tick", left-6, top+(float64(r)+0.5)*cellH+4, end, strconv.Itoa(r*g.agents))
	}
	every = int(math.Ceil(26 / cellW))
	for c := 0; c < len(g.counts[0]); c += every {
		d.text("v-tick", left+(float64(c)+0.5)*cellW, top-6, middle, strconv.Itoa(c*g.classes))
	}
}

func (g *grid) cell(d *drawing, r, c int, at []point, n int) {
	if n == 0 {
		return
	}
	level := float64(n) / float64(g.most)
	tip := fmt.Sprintf("%s, %s: %d", span("agent", "agents", r*g.agents, g.agents, g.nAgents),
		span("class", "classes", c*g.classes, g.classes, g.nClasses), n)
	d.add(mark{kind: polygon, style: "v-cell", at: at, level: math.Max(0.04, level), tip: tip})
	if g.writeCounts {
		style := "v-count"
		if level > 0.65 {
			style = "v-invert"
		}
		d.text(style, (at[0].x+at[1].x)/2, (at[0].y+at[2].y)/2+3.5, middle, strconv.Itoa(n))
	}
}

// span names the range of agents or classes in a cell.
func span(one, several string, first, width, n int) string {
	last := min(first+width, n) - 1
	if last == first {
		return fmt.Sprintf("%s %d", one, first)
	}
	return fmt.Sprintf("%s %d to %d", several, first, last)
}
