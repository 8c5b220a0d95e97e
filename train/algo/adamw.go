package algo

import (
	"math"

	"fspda/device"
)

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter 2019), as in PyTorch. With s the
// number of its calls, this one included,
//
//	m ← Beta1·m + (1-Beta1)·g        v ← Beta2·v + (1-Beta2)·g²
//	u = (m/(1-Beta1^s)) / (√(v/(1-Beta2^s)) + Eps) + decay·x
type AdamW struct{ Beta1, Beta2, Eps float64 }

var adamWKind = OptimizerKind{Name: "adamw",
	Rule: "m ← β₁·m + (1−β₁)·g, v ← β₂·v + (1−β₂)·g², u = (m/(1−β₁ˢ)) / (√(v/(1−β₂ˢ)) + ε)",
	Keys: []string{"beta1", "beta2", "eps"}, General: true, Adaptive: true, UnitSteps: true, Decoupled: true,
	New: func(s Settings) Optimizer {
		return AdamW{Beta1: s.Param("beta1"), Beta2: s.Param("beta2"), Eps: s.Param("eps")}
	}}

func (AdamW) Vectors() []string { return []string{"exp_avg", "exp_avg_sq"} } // PyTorch's names

func (AdamW) InverseGain() float64 { return 0 }

func (o AdamW) Direct(s *State, x device.Vector, decay float64) device.Vector {
	g := s.CorrectedGradient(x)
	s.Count++
	a := o.step(s.Count)
	a.Decay = decay
	s.planAdamW(a, g, x)
	return g
}

// step returns the coefficients of a call, counted from 1, without weight decay.
func (o AdamW) step(call int) device.Adam {
	c1, c2 := 1-math.Pow(o.Beta1, float64(call)), 1-math.Pow(o.Beta2, float64(call))
	return device.Adam{Beta1: o.Beta1, Rest1: 1 - o.Beta1, Beta2: o.Beta2, Rest2: 1 - o.Beta2, Scale1: 1 / c1,
		Scale2: 1 / math.Sqrt(c2), Eps: o.Eps}
}
