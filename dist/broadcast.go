package dist

import (
	"math"
	"sync"
)

// broadcast implements all processes in which agents send to all their neighbours at once. They
// differ only in how the senders are drawn.
type broadcast struct {
	process
	sendRate float64
	senders  func(dst []int, t int) []int
}

// broadcastScratch is scratch memory for one call of Active.
type broadcastScratch struct {
	list  []int
	sends []bool // one for each agent, all false between calls
}

// newBroadcast returns the process of senders. An edge is active with the probability rate, and an
// agent sends with the probability sendRate.
func newBroadcast(g *Graph, spec string, rate, sendRate float64, senders func(dst []int, t int) []int) broadcast {
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
	}}, sendRate, senders}
}

func broadcastOne(p Spec, l edgeSampler) (Process, error) {
	n := l.g.N
	return newBroadcast(l.g, p.Name, 2/float64(n), 1/float64(n), func(dst []int, t int) []int {
		s := l.at(t)
		return append(dst[:0], s.IntN(n))
	}), nil
}

func broadcastInTurn(p Spec, l edgeSampler) (Process, error) {
	n := l.g.N
	return newBroadcast(l.g, p.Name, 2/float64(n), 1/float64(n), func(dst []int, t int) []int {
		checkTime(t)
		return append(dst[:0], t%n)
	}), nil
}

func broadcastAtRandom(p Spec, l edgeSampler) (Process, error) {
	prob, n := p.Numbers[0], l.g.N
	gaps := newGaps(prob, n)
	rate := 1 - float64((1-prob)*(1-prob)) // An edge is active where one of its ends broadcasts.
	return newBroadcast(l.g, p.String(), rate, 1-math.Sqrt(1-rate), func(dst []int, t int) []int {
		dst = dst[:0]
		s := l.at(t)
		for i := gaps.next(&s); i < n; i += 1 + gaps.next(&s) {
			dst = append(dst, i)
		}
		return dst
	}), nil
}

func (broadcast) Broadcasts() bool { return true }

func (p broadcast) SendRate() float64 { return p.sendRate }

func (p broadcast) Senders(dst []int, t int) []int { return p.senders(dst, t) }
