package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// Relay is RelaySGD (Vogels and others 2021, algorithm 1) on a tree: sums of models travel through
// it, and every agent averages all models, each as late as the way is long. An agent keeps the last
// message M_ji and its count C_ji of models of each neighbour j. With x^0 the model at the start,
//
//	h = x - alpha·u
//	to each neighbour j:  M_ij = h + Σ_{k≠j} M_ki        C_ij = 1 + Σ_{k≠j} C_ki
//	x ← (h + Σ_j M_ji + (n - 1 - Σ_j C_ji)·x^0)/n
//
// where the sums of messages are those of the iteration before. After as many iterations as the
// tree is wide the counts sum to n-1. ByCount divides by the number of models that are there
// instead of filling up with x^0: a faster start, with unequal weights.
//
// If an exchange fails, its message counts as empty in this iteration. Without failures and with
// exact gradients the agents reach the optimum, though nothing tracks the gradient. The mean model
// has no recursion of its own. The step size must shrink with the width of the tree.
type Relay struct {
	N       int // agents
	ByCount bool
	Descent
}

var relaySGD = Method{Name: "relaysgd", Check: treeOnly,
	Params: []setting.Key{{Name: "normalize", Choices: []string{"agents", "counts"},
		Help: "what the sum of models is divided by: agents, where x^0 stands for models that have not arrived " +
			"yet, or counts, the number of those that have"}},
	New: func(s Settings) Algorithm {
		return Relay{N: s.Agents, ByCount: s.Choice("normalize") == "counts", Descent: s.Descent}
	}}

// treeOnly refuses graphs with cycles, in which a model would be counted several times.
func treeOnly(r Run) ([]string, error) {
	if n := r.Settings().Agents; r.Edges() != n-1 {
		return nil, setting.Invalid("graph", r.Text("graph"), "has %d edges among %d agents, and so cycles; %s sums "+
			"models along the branches of a tree, which has %d: use path, star, binary-tree, or file(PATH) with a tree",
			r.Edges(), n, r.Text("algo"), n-1)
	}
	if r.ValueBits() < 32 {
		return nil, setting.Invalid("wire", r.Text("wire"), "the counts that %s sends need 32 bits: use wire fp32",
			r.Text("algo"))
	}
	return nil, nil
}

const relayStart = 0 // in State.Aux: x^0

func (Relay) Name() string { return "relaysgd" }

func (a Relay) Traits() Traits {
	return Traits{
		// The memory of an edge is its last message; EdgeMemory.Count is the message's count.
		Memory: Memory{Aux: []string{"start"}, EdgeVectors: []int{ModelLength},
			NewScratch: func() any { return &relayed{} }},
		Exchange: Exchange{Edges: WholeGraph, Tree: true}, // The count beside a vector is a single number.
		Updates:  Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Shifts: true},
		Membership: Membership{Rigid: "sums models along the branches of a tree, which is in two parts without one " +
			"of its inner agents"},
		About: About{"a sum of models", "2·(n-1)·v·d", "1, and 1 an edge", exactOnSkew, "trees, all edges",
			"Vogels and others 2021, algorithm 1"},
	}
}

// relayed is the working memory of an agent: a vector of one number that is 1, h, and the messages
// with their counts.
type relayed struct {
	one, h device.Vector
	sums   []device.Vector
	counts []int
}

func (a Relay) Local(s *State, r *Round) error {
	if r.T == 0 {
		s.copy(s.Aux[relayStart], s.X)
	}
	if err := a.planDescent(s, r, r.Alpha, s.X); err != nil { // h
		return err
	}
	w := s.Scratch.(*relayed)
	if w.one == nil {
		w.one = s.Dev.NewVector(1)
		s.Dev.Write(w.one, []float32{1})
	}
	w.sums, w.counts = w.sums[:0], w.counts[:0]
	if len(r.Links) == 1 && len(s.Edges) == 1 { // a leaf has nothing to relay: its message is h
		s.flush()
		sent, h := s.handOver(r)
		w.h, w.sums, w.counts = h, append(w.sums, sent), append(w.counts, 1)
	} else {
		w.relay(s, r)
	}
	for i, sum := range w.sums {
		number := r.Acquire(1)
		s.combine(number, device.Term{A: float64(w.counts[i]), V: w.one})
		r.Post(i, sum, number)
		r.Links[i].Overhead = 1
	}
	return nil
}

// relay computes for each neighbour the sum of h and the last messages of the others.
func (w *relayed) relay(s *State, r *Round) {
	w.h = s.X
	for i := range r.Links {
		count := 1
		s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X})
		for _, m := range s.Edges {
			if m.Peer != r.Links[i].Peer && m.Count > 0 {
				s.terms = append(s.terms, device.Term{A: 1, V: m.Vectors[0]})
				count += m.Count
			}
		}
		sum := r.Acquire(s.X.Len())
		s.plan(sum, s.terms...)
		w.sums, w.counts = append(w.sums, sum), append(w.counts, count)
	}
	s.flush()
}

func (a Relay) Mix(s *State, r *Round) error {
	w := s.Scratch.(*relayed)
	for i := range r.Links {
		l := &r.Links[i]
		m := s.Edge(l.Peer)
		m.Count = 0
		if l.Received == nil {
			continue
		}
		m.Count = int(s.dot(l.Received[1], w.one))
		m.Vectors[0] = s.retain(r, l.Received[0], m.Vectors[0])
	}
	s.terms = append(s.terms[:0], device.Term{A: 1, V: w.h})
	models := 1
	for _, m := range s.Edges {
		if m.Count > 0 {
			s.terms = append(s.terms, device.Term{A: 1, V: m.Vectors[0]})
			models += m.Count
		}
	}
	if !a.ByCount {
		if models < a.N {
			s.terms = append(s.terms, device.Term{A: float64(a.N - models), V: s.Aux[relayStart]})
		}
		models = a.N
	}
	for i := range s.terms {
		s.terms[i].A /= float64(models)
	}
	s.do(device.Combine(s.X, s.terms...))
	return nil
}
