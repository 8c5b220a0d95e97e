package dist

import (
	"sync"
)

// broadcast implements all processes in which agents send to all their neighbours at once. They
// differ only in how the senders ("speakers") are drawn.
type broadcast struct {
	edgeSampler
	spec     string
	rate     float64 // chance that at least one end of an edge speaks; the same for every edge
	speakers func(dst []int, t int) []int
	scratch  *sync.Pool // of *broadcastScratch
}

// broadcastScratch is scratch memory for one call of Active.
type broadcastScratch struct {
	list   []int
	speaks []bool // one for each agent, all false between calls
}

var _ Broadcaster = broadcast{}

func newBroadcast(l edgeSampler, spec string, rate float64, speak func(dst []int, t int) []int) broadcast {
	n := l.g.N
	pool := &sync.Pool{New: func() any { return &broadcastScratch{speaks: make([]bool, n)} }}
	return broadcast{edgeSampler: l, spec: spec, rate: rate, speakers: speak, scratch: pool}
}

func parseBroadcast(p parsedSpec, l edgeSampler) (Process, error) {
	n := l.g.N
	switch p.name {
	case "broadcast-one":
		return newBroadcast(l, p.name, 2/float64(n), func(dst []int, t int) []int {
			s := l.at(t)
			return append(dst[:0], s.IntN(n))
		}), nil
	case "broadcast-rr":
		return newBroadcast(l, p.name, 2/float64(n), func(dst []int, t int) []int {
			checkTime(t)
			return append(dst[:0], t%n)
		}), nil
	}
	prob, err := p.probability()
	if err != nil {
		return nil, err
	}
	gaps := newGaps(prob, n)
	return newBroadcast(l, withFloat(p.name, prob), 1-(1-prob)*(1-prob), func(dst []int, t int) []int {
		dst = dst[:0]
		s := l.at(t)
		for i := gaps.next(&s); i < n; i += 1 + gaps.next(&s) {
			dst = append(dst, i)
		}
		return dst
	}), nil
}

func (p broadcast) String() string                  { return p.spec }
func (p broadcast) Rate(edge int) float64           { return p.rate }
func (p broadcast) Speakers(dst []int, t int) []int { return p.speakers(dst, t) }

func (p broadcast) Active(dst []Event, t int) []Event {
	dst = dst[:0]
	s := p.scratch.Get().(*broadcastScratch)
	s.list = p.speakers(s.list, t)
	for _, i := range s.list {
		s.speaks[i] = true
	}
	if len(s.list) > 0 {
		for k, e := range p.g.Edges {
			if s.speaks[e.I] || s.speaks[e.J] {
				dst = append(dst, p.g.event(k))
			}
		}
	}
	for _, i := range s.list {
		s.speaks[i] = false
	}
	p.scratch.Put(s)
	return dst
}
