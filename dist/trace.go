package dist

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
)

// trace replays the events of a file. Iterations that are not in the file have none.
type trace struct {
	spec   string
	times  []int     // ascending, distinct
	events [][]Event // of times[k], ascending by edge
	rates  []float64 // for each edge of the graph
}

// readTrace reads lines "t i j". Its errors name the file and the line.
func readTrace(p parsedSpec, g *Graph) (Process, error) {
	f, err := os.Open(p.arg)
	if err != nil {
		return nil, p.bad("cannot read the trace: %v", err)
	}
	defer f.Close()
	at := map[int][]Event{}
	err = readRows(f, 3, func(row []int) error {
		t, i, j := row[0], row[1], row[2]
		if t < 0 || t == math.MaxInt {
			return fmt.Errorf("iteration %d; they count from 0", t)
		}
		k, ok := g.EdgeIndex(i, j)
		if !ok {
			return fmt.Errorf("(%d,%d) is not an edge of the graph %s of %d agents", i, j, g, g.N)
		}
		if slices.ContainsFunc(at[t], func(e Event) bool { return e.Edge == k }) {
			return fmt.Errorf("edge (%d,%d) was already active at iteration %d; list it once", i, j, t)
		}
		at[t] = append(at[t], Event{Edge: k, From: i, To: j})
		return nil
	})
	if err != nil {
		return nil, p.bad("%s:%v", p.arg, err)
	}
	return newTrace("trace("+p.arg+")", len(g.Edges), at), nil
}

func newTrace(spec string, edges int, at map[int][]Event) trace {
	p := trace{spec: spec, rates: make([]float64, edges)}
	for t := range at {
		p.times = append(p.times, t)
	}
	slices.Sort(p.times)
	for _, t := range p.times {
		events := at[t]
		slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Edge, b.Edge) })
		p.events = append(p.events, events)
		for _, e := range events {
			p.rates[e.Edge]++
		}
	}
	if len(p.times) > 0 {
		length := float64(p.times[len(p.times)-1] + 1)
		for k := range p.rates {
			p.rates[k] /= length
		}
	}
	return p
}

func (p trace) String() string { return p.spec }

// Rate returns the share of active iterations, up to the last one in the file.
func (p trace) Rate(edge int) float64 { return p.rates[edge] }

func (p trace) Active(dst []Event, t int) []Event {
	checkTime(t)
	k, ok := slices.BinarySearch(p.times, t)
	if !ok {
		return dst[:0]
	}
	return append(dst[:0], p.events[k]...)
}
