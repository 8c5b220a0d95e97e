package dist

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fspda/internal/bounded"
)

// readTrace reads lines "t i j". Its errors name the file and the line.
func readTrace(p Spec, l edgeSampler) (Process, error) {
	g, path := l.g, p.Texts[0]
	f, err := bounded.Open(path)
	if err != nil {
		return nil, p.Errorf("cannot read the trace: %v", err)
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
		return nil, p.Errorf("%s:%v", path, err)
	}
	return newTrace(p.String(), len(g.Edges), at), nil
}

// newTrace returns a process that replays events. Iterations without any have none. The rate of an
// edge is the share of active iterations, up to the last one with events.
func newTrace(spec string, edges int, at map[int][]Event) process {
	last, rates := -1, make([]float64, edges)
	for t, events := range at {
		last = max(last, t)
		slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Edge, b.Edge) })
		for _, e := range events {
			rates[e.Edge]++
		}
	}
	for k := range rates {
		rates[k] /= float64(max(1, last+1))
	}
	return process{spec, func(edge int) float64 { return rates[edge] }, func(dst []Event, t int) []Event {
		return append(dst, at[t]...)
	}}
}
