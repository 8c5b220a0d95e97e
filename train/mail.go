package train

import (
	"math"

	"fspda/dist"
)

// mail is the exchanges of an asynchronous run that are on their way over simulated links. The
// values are those of the moment in which the edge rang; an agent whose exchange is under way
// declines others, and its next step waits for what it was sent.
type mail struct {
	ports []port
	bits  float64   // of an exchange, each way
	at    []float64 // when an agent's last mail is there
	calls int       // exchanges so far: what keys their losses
}

func newMail(s *Setup) *mail {
	n := s.Graph.N
	m := &mail{ports: make([]port, n), at: make([]float64, n), bits: 32 * float64(s.Mask.Len())}
	for i := range n {
		m.ports[i] = port{id: i, net: s.Links, seed: s.Config.Seed}
	}
	return m
}

// awaited tells whether an end of the edge has mail on its way.
func (m *mail) awaited(e dist.Edge, now float64) bool {
	return m != nil && (m.at[e.I] > now || m.at[e.J] > now)
}

// post sends both ways.
func (m *mail) post(e dist.Edge, now float64) {
	if m == nil {
		return
	}
	m.calls++
	m.at[e.J] = m.ports[e.I].send(now, m.calls, e.J, m.bits)
	m.at[e.I] = m.ports[e.J].send(now, m.calls, e.I, m.bits)
}

// there is when agent i has its mail.
func (m *mail) there(i int, now float64) float64 {
	if m == nil {
		return now
	}
	return math.Max(now, m.at[i])
}
