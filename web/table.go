package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"fspda/internal/units"
)

// Limits of the tables behind drawings.
const (
	maxTableRows  = 25 // evaluations, spread evenly, with the first and the last
	maxTableCells = 30 // agents, and classes
)

// table lists the numbers behind the chart: a line for an evaluation.
func (c *chart) table(m *metrics, axes [2]xAxis) PageTable {
	head := []string{"iteration", "bits"}
	keys := []string{}
	for _, cu := range c.curves {
		keys, head = append(keys, cu.key), append(head, cu.name)
	}
	if top := c.band[1]; top != "" {
		keys, head = append(keys, top), append(head, "best agent")
	}
	t := PageTable{Title: c.title, Lines: [][]string{head}}
	rows := min(m.rows, maxTableRows)
	if rows < m.rows {
		t.Note = fmt.Sprintf("%d of %s evaluations; metrics.csv has all.", rows, grouped(float64(m.rows)))
	}
	for i := range rows {
		r := i
		if rows > 1 {
			r = int(math.Round(float64(i) * float64(m.rows-1) / float64(rows-1)))
		}
		line := []string{grouped(m.column[axes[0].key][r]), units.SI(m.column[axes[1].key][r], "bit")}
		for _, k := range keys {
			line = append(line, c.value(m.column[k][r]))
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}

// splitTable lists the numbers behind the heat map.
func (s *shards) splitTable() PageTable {
	t := PageTable{Title: "Examples of each class at each agent", Lines: [][]string{{"agent"}}}
	agents, classes := min(len(s.Agents), maxTableCells), min(s.Classes, maxTableCells)
	for c := range classes {
		t.Lines[0] = append(t.Lines[0], "class "+strconv.Itoa(c))
	}
	for i, row := range s.Agents[:agents] {
		line := []string{strconv.Itoa(i)}
		for _, n := range row[:classes] {
			line = append(line, grouped(float64(n)))
		}
		t.Lines = append(t.Lines, line)
	}
	if agents < len(s.Agents) || classes < s.Classes {
		t.Note = fmt.Sprintf("%d of %d agents, %d of %d classes; shards.json has all.", agents, len(s.Agents), classes,
			s.Classes)
	}
	return t
}

// graphTable lists the neighbours of each agent.
func (s *shards) graphTable() PageTable {
	t := PageTable{Title: "Neighbours of each agent", Lines: [][]string{{"agent", "degree", "neighbours"}}}
	neighbours := make([][]string, len(s.Agents))
	for _, e := range s.Edges {
		for k, i := range e {
			neighbours[i] = append(neighbours[i], strconv.Itoa(e[1-k]))
		}
	}
	agents := min(len(s.Agents), maxTableCells)
	for i, list := range neighbours[:agents] {
		degree := strconv.Itoa(len(list))
		if len(list) > maxTableCells {
			list = append(list[:maxTableCells:maxTableCells], "…")
		}
		t.Lines = append(t.Lines, []string{strconv.Itoa(i), degree, strings.Join(list, ", ")})
	}
	if agents < len(s.Agents) {
		t.Note = fmt.Sprintf("%d of %d agents; shards.json has all.", agents, len(s.Agents))
	}
	return t
}

// Head is the first line.
func (t PageTable) Head() []string { return t.Lines[0] }

// Body is the other lines.
func (t PageTable) Body() [][]string { return t.Lines[1:] }
