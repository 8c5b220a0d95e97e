package web

import (
	"fmt"
	"math"
	"strconv"
)

// Limits of the heat map: above mostCells a side, neighbours are put together; up to mostCounts
// classes, counts are written out.
const (
	maxCells  = 100
	maxCounts = 12
)

// heatMap draws how many examples of each class each agent holds: one row an agent, one column a
// class, the stronger the more. It is nil if there is nothing to draw.
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

// grid is shards with neighbours put together so that it can be drawn.
type grid struct {
	counts            [][]int
	agents, classes   int // in one row, in one column
	nAgents, nClasses int // in all
	most              int
	writeCounts       bool
}

// binned sums neighbouring agents and classes where there are more than can be drawn.
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

// groups is how many of n neighbours share a cell.
func groups(n int) int { return (n + maxCells - 1) / maxCells }

// sides labels rows and columns, as many as find room.
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

// cell draws one count.
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

// span names the first one, or the first to the last where several share a cell.
func span(one, several string, first, width, n int) string {
	last := min(first+width, n) - 1
	if last == first {
		return fmt.Sprintf("%s %d", one, first)
	}
	return fmt.Sprintf("%s %d to %d", several, first, last)
}
