package simnet

import (
	"math"

	"fspda/dist"
)

// inFlight tracks the exchanges of an asynchronous run that are on their way over simulated links.
// Their values were taken at the moment at which the edge fired. An agent whose exchange is in
// flight declines others, and its next step waits for the values that it was sent.
type inFlight struct {
	ports []port    // port of each agent; none: values arrive at once
	bits  float64   // bits of an exchange, in each direction
	until []float64 // arrival of the last values that each agent was sent
	count int       // exchanges so far: the key of their losses
}

func newInFlight(l *Links, agents int, seed uint64, bits float64) *inFlight {
	f := &inFlight{until: make([]float64, agents), bits: bits}
	for i := range agents {
		if l != nil {
			f.ports = append(f.ports, port{id: i, net: l, seed: seed})
		}
	}
	return f
}

// busy reports whether an end of the edge waits for values.
func (f *inFlight) busy(e dist.Edge, now float64) bool {
	return f.until[e.I] > now || f.until[e.J] > now
}

// send sends the values of an exchange in both directions.
func (f *inFlight) send(e dist.Edge, now float64) {
	if len(f.ports) == 0 {
		return
	}
	f.count++
	f.until[e.J] = f.ports[e.I].send(now, f.count, e.J, f.bits)
	f.until[e.I] = f.ports[e.J].send(now, f.count, e.I, f.bits)
}

// arrival returns the time at which agent i has all values that it was sent, now at the earliest.
func (f *inFlight) arrival(i int, now float64) float64 { return math.Max(now, f.until[i]) }
