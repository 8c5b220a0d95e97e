package algo

import (
	"fmt"

	"fspda/device"
	"fspda/train/setting"
)

// Swarm is Swarm-SGD (Nadiradze et al., 2021): pairs of agents average their models after local
// steps, and their messages may be quantized. The receiver decodes relative to a vector of its own,
// so enc and dec(·, reference) below are a lattice quantizer, or the identity.
//
// Non-blocking: every agent takes one step in every iteration. Besides the live model x it has o,
// its model when it last initiated an exchange, and c, the copy that others average with; both
// start at x. When i initiates an exchange with j, both send enc(o) and enc(c) from before this
// iteration's step, and
//
//	q_c, r_c = dec(enc(c), dec(enc(o), o_own))      of its own, and of the other's codes
//	x_a ← x_a - alpha·u_a                           (every agent a)
//	c_i = (q_c + r_c)/2 - (o_i - x_i),  o_i = c_i,  x_i = c_i
//	c_j = (q_c + r_c)/2
//
// so that i publishes all progress since its last exchange. Blocking: only the two ends take Steps
// steps each, on as many batches, and then
//
//	x ← (x + dec(enc(x_other), x))/2
//
// Without a quantizer the mean of the models (blocking) moves by -(alpha/n) times the sum of the
// directions used, and the mean of the copies (non-blocking) by -(o_i - x_i)/n; a lattice of side s
// adds at most s/(2n) and s/n per exchange. It is biased if agents hold different data. Blocking
// with uniform edges lets agents of high degree compute more often, and so gives them more weight.
//
// The mean of two lattice points is in the middle of a cell in half of all cases. How such a tie is
// rounded depends on the last bit of a number, so that a replay in another precision is several
// cells away after some time, at the same distance from the optimum.
//
// Departure: the link defines the initiator, the same at both ends. The authors' reference program
// takes the iteration modulo the agent's own degree + 1, which differs between agents of different
// degree.
type Swarm struct {
	Blocking bool
	Steps    int // local steps per exchange, blocking only
	Descent
}

// The keys of this method.
var (
	swarmForm = setting.Key{Name: "swarm", Topic: "exchange", Default: "nonblocking",
		Choices: []string{"nonblocking", "blocking"},
		Help:    "swarm: nonblocking, or blocking"}
	initiator = setting.Key{Name: "initiator", Topic: "exchange", Default: "global",
		Choices: []string{"global", "degree"},
		Needs:   []setting.Need{setting.Is("swarm", "nonblocking")},
		Help: "non-blocking swarm: which end of an exchange publishes its progress: global (one end, the same for " +
			"both: the drawn edge's first, or a coin's choice), or degree (the released program's rule: an agent " +
			"whose number is the iteration modulo its degree + 1, which may be both ends or none)"}
)

var swarm = Method{Name: "swarm", Keys: []setting.Key{compress, swarmForm, initiator, LocalSteps}, Check: swarmFair,
	New: func(s Settings) Algorithm {
		return Swarm{Blocking: s.Choice("swarm") == "blocking", Steps: max(1, s.Whole("local_steps")),
			Descent: s.Descent}
	}}

// swarmFair warns if blocking pairs make agents of high degree compute more often.
func swarmFair(r Run) ([]string, error) {
	if r.Settings().Choice("swarm") != "blocking" || r.Text("edges") != "one-edge" || r.EqualDegrees() {
		return nil, nil
	}
	return []string{fmt.Sprintf("blocking pairs on uniform edges compute as often as their degree, which "+
		"differs on graph %s: the objective is weighed by degree; edges one-edge-round-robin is fairer, "+
		"swarm nonblocking exact", r.Text("graph"))}, nil
}

const (
	swarmStart = iota // in State.Aux: o; non-blocking only
	swarmCopy         // c; non-blocking only
)

func (Swarm) Name() string { return "swarm" }

func (a Swarm) Traits() Traits {
	t := Traits{
		Memory:     Memory{Aux: []string{"o", "c"}},
		Exchange:   Exchange{Edges: Pairs, Code: LatticeCode, Vectors: 2}, // o and c
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: a.regroup},
		About: About{"two copies of the model, or codes of them; blocking one", "4·v·d·|E_t|; blocking 2·v·d·|E_t|",
			"2; blocking 0", biasedOnSkew, "any graph, pairs", "Nadiradze and others 2021"},
	}
	if a.Blocking {
		t.Aux, t.Vectors, t.StepsPerExchange = nil, 1, true
	}
	return t
}

// regroup makes the copies of new members their models, as at the start.
func (a Swarm) regroup(s *State, g *Group) error {
	if g.Joins() && !a.Blocking {
		s.copy(s.Aux[swarmStart], s.X)
		s.copy(s.Aux[swarmCopy], s.X)
	}
	return nil
}

func (a Swarm) Local(s *State, r *Round) error {
	if a.Blocking {
		return a.together(s, r)
	}
	if r.T == 0 {
		s.copy(s.Aux[swarmStart], s.X)
		s.copy(s.Aux[swarmCopy], s.X)
	}
	for i := range r.Links {
		start, err := encode(s, r, s.Aux[swarmStart], 0)
		if err != nil {
			return err
		}
		public, err := encode(s, r, s.Aux[swarmCopy], 1)
		if err != nil {
			return err
		}
		r.Post(i, start, public)
	}
	return a.Step(s, r, r.Alpha, s.X)
}

// together is the local half of the blocking form: local steps, then the message.
func (a Swarm) together(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return nil
	}
	for h := range a.Steps {
		if h > 0 {
			r.NextBatch()
		}
		if err := a.Step(s, r, r.Alpha, s.X); err != nil {
			return err
		}
	}
	for i := range r.Links {
		x, err := encode(s, r, s.X, 0)
		if err != nil {
			return err
		}
		r.Post(i, x)
	}
	return nil
}

func (a Swarm) Mix(s *State, r *Round) error {
	for i := range r.Links {
		l := &r.Links[i]
		if l.Received == nil {
			continue
		}
		var err error
		if a.Blocking {
			err = a.average(s, r, l)
		} else {
			err = a.exchange(s, r, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// average is the exchange of the blocking form.
func (a Swarm) average(s *State, r *Round, l *Link) error {
	other, err := decode(r, l.Received[0], s.X)
	if err != nil {
		return err
	}
	s.combine(s.X, device.Term{A: 0.5, V: s.X}, device.Term{A: 0.5, V: other})
	return nil
}

// exchange is that of the non-blocking form. The agent decodes its own copy as the other end does,
// so that both ends average the same numbers.
func (a Swarm) exchange(s *State, r *Round, l *Link) error {
	start, public := s.Aux[swarmStart], s.Aux[swarmCopy]
	own, err := decodePair(r, l.Sent, start)
	if err != nil {
		return err
	}
	other, err := decodePair(r, l.Received, start)
	if err != nil {
		return err
	}
	s.terms = append(s.terms[:0], device.Term{A: 0.5, V: own}, device.Term{A: 0.5, V: other})
	if !l.Initiator {
		s.do(device.Combine(public, s.terms...))
		return nil
	}
	s.terms = append(s.terms, device.Term{A: -1, V: start}, device.Term{A: 1, V: s.X})
	s.do(device.Combine(public, s.terms...))
	s.copy(start, public)
	s.copy(s.X, public)
	return nil
}

// decodePair decodes o relative to the agent's own o, and c relative to the result.
func decodePair(r *Round, codes []device.Vector, start device.Vector) (device.Vector, error) {
	if r.Decode == nil {
		return codes[1], nil
	}
	near, err := decode(r, codes[0], start)
	if err != nil {
		return nil, err
	}
	return decode(r, codes[1], near)
}

// encode returns the codes of x in a pooled vector.
func encode(s *State, r *Round, x device.Vector, which int) (device.Vector, error) {
	b := r.Acquire(x.Len())
	if r.Encode == nil {
		s.copy(b, x)
		return b, nil
	}
	return b, r.Encode(b, x, which)
}

// decode returns the decoded vector relative to ref, in a pooled vector, or the codes themselves
// without a quantizer.
func decode(r *Round, codes, ref device.Vector) (device.Vector, error) {
	if r.Decode == nil {
		return codes, nil
	}
	b := r.Acquire(ref.Len())
	return b, r.Decode(b, codes, ref)
}
