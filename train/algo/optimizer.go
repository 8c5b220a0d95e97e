package algo

import (
	"slices"

	"fspda/device"
)

// Optimizer turns gradients into directions u. The step size belongs to the algorithm, x ← x -
// alpha·u. An Optimizer is immutable and shared by all agents: its vectors and the number of its
// calls are in the State of an agent.
type Optimizer interface {
	// Vectors names the vectors that it keeps between calls, all zero at the start.
	Vectors() []string
	// Direct returns the direction for the gradient [State.CorrectedGradient]. Decay is the factor of
	// x in the direction. The vectors are s.Opt, in the order of Vectors; s.Count is for the optimizer
	// to count its calls. The last passes may be planned only.
	Direct(s *State, x device.Vector, decay float64) device.Vector
	// InverseGain is 1 over the limit of u for a constant gradient of 1; 0 if u is not linear in
	// the gradient.
	InverseGain() float64
}

// Descent is how an algorithm moves along gradients: an optimizer, where a correction enters, and
// decoupled weight decay. The zero value is plain gradient descent. Algorithms embed it, take the
// one of their [Settings], and name it in their [Traits].
type Descent struct {
	Opt Optimizer // nil is Plain
	// Corrected puts the correction of an algorithm into the gradient, u = Opt(g + c). Otherwise it
	// is added to the direction, Opt(g) + c. Both have the same fixed point if Opt is linear. An
	// adaptive optimizer with the second one ends where the preconditioned gradients balance, which
	// is no minimum if agents hold different data.
	Corrected bool
	Decay     *Decay // decoupled weight decay; nil: none, or in the gradient
}

// Decay is decoupled weight decay: Rate·x is part of the direction, on all coordinates but Except.
type Decay struct {
	Rate   float64
	Except []uint32 // ascending
}

func (d Descent) Optimizer() Optimizer {
	if d.Opt == nil {
		return Plain{}
	}
	return d.Opt
}

// inverseGain is 1 over the multiple of ∇F - ∇f_i to which a correction of that unit tends; 0:
// there is no limit.
func (d Descent) inverseGain() float64 {
	if d.Corrected {
		return 1
	}
	return d.Optimizer().InverseGain()
}

// Names lists the names of State.Aux: the vectors of the algorithm, then of its optimizer, then the
// average of weights, if there is one.
func Names(a Algorithm) []string { return a.Traits().names() }

func (t Traits) names() []string {
	names := slices.Concat(t.Aux, t.Descent.Optimizer().Vectors())
	if t.Averages {
		names = append(names, AverageName)
	}
	return names
}

// Direction computes the gradient at x and returns the direction u of the optimizer. The vector may
// be one that the optimizer keeps, so that the caller only reads it. [Descent.Step] has the
// corrections c.
func (d Descent) Direction(s *State, r *Round, alpha float64, x device.Vector,
	c ...device.Term) (device.Vector, error) {
	if err := r.Grad(s.g, x); err != nil {
		return nil, err
	}
	return d.direct(s, alpha, x, c...), nil
}

// direct returns the direction of the gradient s.g at x.
func (d Descent) direct(s *State, alpha float64, x device.Vector, c ...device.Term) device.Vector {
	u := d.planDirection(s, alpha, x, c...)
	s.flush()
	return u
}

// planDirection is direct, but the last passes may be planned only.
func (d Descent) planDirection(s *State, alpha float64, x device.Vector, c ...device.Term) device.Vector {
	s.input = append(s.input[:0], device.Term{A: 1, V: s.g})
	if d.Corrected && alpha > 0 {
		for _, t := range c {
			s.input = append(s.input, device.Term{A: t.A / alpha, V: t.V})
		}
	}
	rate := 0.0
	if d.Decay != nil {
		rate = d.Decay.Rate
	}
	u := d.Optimizer().Direct(s, x, rate)
	if d.Decay != nil && s.except != nil {
		s.flush()
		s.do(device.Gather(s.few, x, s.except))
		s.add(u, device.SparseTerm{A: -rate, V: s.few, Idx: s.except})
	}
	if o, ok := d.Optimizer().(stepper); ok {
		s.flush()
		return o.turn(s, alpha, x, u)
	}
	return u
}

// Step takes the step
//
//	x ← x - alpha·Opt(g) - Σ c              or, if Corrected,
//	x ← x - alpha·Opt(g + Σ c/alpha)
//
// with the gradient g at x, and stores the result in s.X. At alpha = 0 a corrected step is none.
func (d Descent) Step(s *State, r *Round, alpha float64, x device.Vector, c ...device.Term) error {
	if err := d.planDescent(s, r, alpha, x, c...); err != nil {
		return err
	}
	s.flush()
	return nil
}

// planDescent is Step, but the last passes are planned only.
func (d Descent) planDescent(s *State, r *Round, alpha float64, x device.Vector, c ...device.Term) error {
	if err := r.Grad(s.g, x); err != nil {
		return err
	}
	u := d.planDirection(s, alpha, x, c...)
	s.terms = append(s.terms[:0], device.Term{A: 1, V: x}, device.Term{A: -alpha, V: u})
	if !d.Corrected {
		for _, t := range c {
			s.terms = append(s.terms, device.Term{A: -t.A, V: t.V})
		}
	}
	s.plan(s.X, s.terms...)
	return nil
}

// shrink is decoupled weight decay of x by itself, x ← x - rate·x, on the coordinates that decay.
// The others keep their bits.
func (s *State) shrink(r *Round, x device.Vector, rate float64) {
	if s.except != nil {
		s.do(device.Gather(s.few, x, s.except))
	}
	s.combine(x, device.Term{A: 1 - rate, V: x})
	if s.except != nil {
		shrunk := r.Acquire(s.few.Len())
		s.do(device.Gather(shrunk, x, s.except))
		s.add(x, device.SparseTerm{A: -1, V: shrunk, Idx: s.except},
			device.SparseTerm{A: 1, V: s.few, Idx: s.except})
	}
}

// CorrectedGradient returns the gradient of a call of [Optimizer.Direct], with the corrections that
// belong to it, as one vector, which the optimizer may overwrite.
func (s *State) CorrectedGradient(x device.Vector) device.Vector {
	g := s.decayed(s.input, x, 0)
	s.flush()
	return g
}

// decayed returns Σ terms + decay·x: the only vector if there is one, else s.g.
func (s *State) decayed(terms []device.Term, x device.Vector, decay float64) device.Vector {
	if len(terms) == 1 && decay == 0 {
		return terms[0].V
	}
	s.terms = append(s.terms[:0], terms...)
	if decay != 0 {
		s.terms = append(s.terms, device.Term{A: decay, V: x})
	}
	s.plan(s.g, s.terms...)
	return s.g
}
