package algo

import (
	"fmt"
	"slices"

	"fspda/device"
	"fspda/train/setting"
)

// EF is FSPDA-SA over compressed copies. FSPDA-SA compares the same coordinates at both ends of an
// edge, so that it can take masks alone. Here both ends of an edge keep a copy of the model of each
// end, H_i and H_j, and send compressed differences of model and copy. With Q the compressor, u
// = Opt(g), and the placements of [SA],
//
//	q = Q(x - H_i)                          (sent before the gradient is computed)
//	x ← x - alpha·u - eta·lambda
//	H_i ← H_i + q    H_j ← H_j + q'         (on edges over which q' was received)
//	D = H_i - H_j    x ← x - gamma·D    lambda ← lambda + beta·D
//
// q is of the model at t, and D of the copies after this exchange. D has all coordinates. Both
// copies start at x^0. A failed exchange changes neither copy at either end.
//
// Invariants, for every compressor, graph and edge process: both ends of an edge hold the same two
// vectors to the bit, so that they add exact negatives. Hence Σ lambda = 0, and the mean model
// moves by -alpha·mean(u). With Q the identity it is FSPDA-SA on whole vectors. With exact
// gradients and a contraction Q the agents reach the optimum if gamma and eta are small enough.
//
// The method is this program's own. We have no proof of its convergence.
type EF struct {
	Gamma float64 // gossip step size
	Beta  float64 // dual step size
	Descent
}

var fspdaSAEF = Method{Name: "fspda-sa-ef", Keys: []setting.Key{Gamma, Beta, compress, norms}, Check: checkCopies,
	New: func(s Settings) Algorithm {
		return EF{Gamma: s.Param("gamma"), Beta: s.Param("beta"), Descent: s.Descent}
	}}

// The vectors of an edge, in EdgeMemory.Vectors.
const (
	efOwn   = iota // the copy of this end
	efOther        // the copy of the other end
)

func (EF) Name() string { return "fspda-sa-ef" }

func (a EF) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"lambda"}, Transient: true,
			Tracked:     Tracked{"lambda", SA{Descent: a.Descent}.limit},
			EdgeVectors: []int{ModelLength, ModelLength}, EdgesFromModel: true,
			// What the agent sends over its links in an iteration.
			NewScratch: func() any { return &[]device.SparseTerm{} }},
		Exchange:   Exchange{Edges: AnyEdges, Code: CompressedCode, Masks: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: AnyPlacement},
		Needs:      Needs{Dual: true},
		Membership: Membership{Regroup: recentre(saLambda)},
		About: About{"a compressed difference from a copy", "2·payload·|E_t|", "1 (dual); 2 an edge",
			exactOnSkew + " (measured; experimental)", anyGraph, "FSPDA-SA over compressed copies; ours"},
	}
}

func (a EF) Local(s *State, r *Round) error {
	sent := s.Scratch.(*[]device.SparseTerm)
	*sent = (*sent)[:0]
	for i := range r.Links {
		q, err := s.sendDifference(r, i, efOwn)
		if err != nil {
			return err
		}
		*sent = append(*sent, q)
	}
	return a.Step(s, r, r.Alpha, s.X, device.Term{A: r.Eta, V: s.Aux[saLambda]})
}

// sendDifference compresses the difference of the model and vector number copy of the edge of link
// i, posts the result q over the link, and returns q. It overwrites the gradient.
func (s *State) sendDifference(r *Round, i, copy int) (q device.SparseTerm, err error) {
	l := &r.Links[i]
	at := slices.IndexFunc(s.Edges, func(m *EdgeMemory) bool { return m.Peer == l.Peer })
	s.combine(s.g, device.Term{A: 1, V: s.X}, device.Term{A: -1, V: s.Edges[at].Vectors[copy]})
	if l.Mask != nil { // both ends know the coordinates
		q = device.SparseTerm{A: 1, V: s.picked(r, s.g, l.Mask), Idx: l.Mask}
		r.Post(i, q.V)
		return q, nil
	}
	c, err := r.Compress(s.g, 1+at) // each edge rounds by draws of its own
	if err != nil {
		return q, err
	}
	r.Post(i, c.Vectors...)
	return device.SparseTerm{A: 1, V: c.Vectors[0], Idx: c.Index}, nil
}

// received returns the message of a link, as a term of factor 1.
func (l *Link) received() device.SparseTerm {
	q := device.SparseTerm{A: 1, V: l.Received[0], Idx: l.Mask}
	if l.Mask == nil && len(l.Coords) > 0 {
		q.Idx = l.Coords[0]
	}
	return q
}

func (a EF) Mix(s *State, r *Round) error {
	sent := *s.Scratch.(*[]device.SparseTerm)
	for i := range r.Links {
		l := &r.Links[i]
		if l.Received == nil {
			continue
		}
		m := s.Edge(l.Peer)
		s.add(m.Vectors[efOwn], sent[i])
		s.add(m.Vectors[efOther], l.received())
		s.do(device.AddDiff(m.Vectors[efOwn], m.Vectors[efOther], nil,
			s.targets(device.Term{A: -a.Gamma, V: s.X}, device.Term{A: a.Beta, V: s.Aux[saLambda]})...))
	}
	return nil
}

// checkCopies checks the compressor and the gains of FSPDA-SA over compressed copies.
func checkCopies(r Run) ([]string, error) {
	s, c := r.Settings(), r.Contraction()
	gamma := s.Param("gamma")
	switch {
	case !(c.Message > 0):
		return nil, refuseExpansion(r, c)
	case s.Agents == 1:
		return nil, nil
	case gamma >= 1:
		return nil, setting.Invalid("gamma", gamma, "must be below 1: it is the share of the difference of two copies "+
			"by which an exchange moves a model")
	}
	warnings, err := r.CheckGain("gamma", gamma, s.Eta*s.Param("beta"))
	if gamma > c.Limit {
		warnings = append(warnings, fmt.Sprintf("gamma %v is above %.3g, from which on the differences between agents "+
			"may grow: each message moves a copy by %.3g of what it lacks at least; leave gamma out for a safe value",
			gamma, c.Limit, c.Message))
	}
	return warnings, err
}
