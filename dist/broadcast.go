package dist

import (
	"sync"
)

// broadcast implements all processes in which agents send to all their neighbours at once. They
// differ only in how the senders are drawn.
type broadcast struct {
	process
	senders func(dst []int, t int) []int
}

// broadcastScratch is scratch memory for one call of Active.
type broadcastScratch struct {
	list  []int
	sends []bool // one for each agent, all false between calls
}

var _ Broadcaster = broadcast{}

// newBroadcast returns the process of senders; an edge is active with the probability rate.
func newBroadcast(g *Graph, spec string, rate float64, senders func(dst []int, t int) []int) broadcast {
	pool := &sync.Pool{New: func() any { return &broadcastScratch{sends: make([]bool, g.N)} }}
	return broadcast{process{spec, each(rate), func(dst []Event, t int) []Event {
		s := pool.Get().(*broadcastScratch)
		s.list = senders(s.list, t)
		for _, i := range s.list {
			s.sends[i] = true
		}
		for k, e := range g.Edges {
			if len(s.list) > 0 && (s.sends[e.I] || s.sends[e.J]) {
				dst = append(dst, g.event(k))
			}
		}
		for _, i := range s.list {
			s.sends[i] = false
		}
		pool.Put(s)
		return dst
	}}, senders}
}

func parseBroadcast(p parsedSpec, l edgeSampler) (Process, error) {
	n := l.g.N
	switch p.name {
	case "broadcast-one":
		return newBroadcast(l.g, p.name, 2/float64(n), func(dst []int, t int) []int {
			s := l.at(t)
			return append(dst[:0], s.IntN(n))
		}), nil
	case "broadcast-rr":
		return newBroadcast(l.g, p.name, 2/float64(n), func(dst []int, t int) []int {
			checkTime(t)
			return append(dst[:0], t%n)
		}), nil
	}
	prob, err := p.probability()
	if err != nil {
		return nil, err
	}
	gaps := newGaps(prob, n)
	return newBroadcast(l.g, withFloat(p.name, prob), 1-(1-prob)*(1-prob), func(dst []int, t int) []int {
		dst = dst[:0]
		s := l.at(t)
		for i := gaps.next(&s); i < n; i += 1 + gaps.next(&s) {
			dst = append(dst, i)
		}
		return dst
	}), nil
}

// Senders implements [Broadcaster].
func (p broadcast) Senders(dst []int, t int) []int { return p.senders(dst, t) }
