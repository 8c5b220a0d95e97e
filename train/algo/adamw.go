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

func (AdamW) Vectors() []string { return []string{"exp_avg", "exp_avg_sq"} } // PyTorch's names

func (AdamW) InverseGain() float64 { return 0 }

func (o AdamW) Direct(s *State, x device.Vector, decay float64) device.Vector {
	g := s.CorrectedGradient(x)
	s.Count++
	c1, c2 := 1-math.Pow(o.Beta1, float64(s.Count)), 1-math.Pow(o.Beta2, float64(s.Count))
	s.planAdamW(device.Adam{Beta1: o.Beta1, Rest1: 1 - o.Beta1, Beta2: o.Beta2, Rest2: 1 - o.Beta2, Scale1: 1 / c1,
		Scale2: 1 / math.Sqrt(c2), Eps: o.Eps, Decay: decay}, g, x)
	return g
}
