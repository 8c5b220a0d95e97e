package algo

import "fspda/device"

// Plain is the gradient itself, PyTorch's SGD without momentum.
type Plain struct{}

var plainKind = OptimizerKind{Name: "sgd", Rule: "u = g", General: true, LanguageAlpha: 0.3}

// HeavyBall is momentum, PyTorch's SGD with dampening 0:
//
//	b ← Mu·b + g        u = b
type HeavyBall struct{ Mu float64 }

var heavyBallKind = OptimizerKind{Name: "heavy-ball", Rule: "b ← μ·b + g, u = b", General: true, Momentum: 0.9,
	LanguageAlpha: 0.03,
	New:           func(s Settings) Optimizer { return HeavyBall{Mu: s.Momentum} }}

// Nesterov is PyTorch's SGD with Nesterov momentum:
//
//	b ← Mu·b + g        u = g + Mu·b
type Nesterov struct{ Mu float64 }

var nesterovKind = OptimizerKind{Name: "nesterov", Rule: "b ← μ·b + g, u = g + μ·b", General: true, Momentum: 0.9,
	Nesterov: true, LanguageAlpha: 0.03,
	New: func(s Settings) Optimizer { return Nesterov{Mu: s.Momentum} }}

func (Plain) Vectors() []string { return nil }

func (HeavyBall) Vectors() []string { return []string{"momentum"} }

func (Nesterov) Vectors() []string { return []string{"momentum"} }

func (Plain) InverseGain() float64 { return 1 }

func (o HeavyBall) InverseGain() float64 { return 1 - o.Mu }

func (o Nesterov) InverseGain() float64 { return 1 - o.Mu }

func (Plain) Direct(s *State, x device.Vector, decay float64) device.Vector {
	return s.decayed(s.input, x, decay)
}

func (o HeavyBall) Direct(s *State, x device.Vector, decay float64) device.Vector {
	s.input = append(s.input[:0], device.Term{A: 1, V: s.accumulate(o.Mu)})
	return s.decayed(s.input, x, decay)
}

func (o Nesterov) Direct(s *State, x device.Vector, decay float64) device.Vector {
	s.input = append(s.input, device.Term{A: o.Mu, V: s.accumulate(o.Mu)})
	return s.decayed(s.input, x, decay)
}

// accumulate computes b ← mu·b + Σ input and returns b.
func (s *State) accumulate(mu float64) device.Vector {
	b := s.Opt[0]
	s.terms = append(append(s.terms[:0], device.Term{A: mu, V: b}), s.input...)
	s.plan(b, s.terms...)
	return b
}
