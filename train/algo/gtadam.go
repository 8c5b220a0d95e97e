package algo

import (
	"slices"

	"fspda/device"
	"fspda/train/setting"
)

// GTAdam is the optimizer of GT-Adam (Carnevale, Farina, Notarnicola and Notarstefano 2022), for
// the tracker of gradients: Adam without correction of the bias, with eps inside the root,
//
//	m ← Beta1·m + (1-Beta1)·g        v ← min(Beta2·v + (1-Beta2)·g², Limit)        u = m/√(v + Eps) + decay·x
//
// The vector exp_avg_sq is v + Eps.
type GTAdam struct {
	Beta1, Beta2, Eps float64
	Limit             float64 // Limit is the paper's G; 0: none.
}

var gtAdamKind = OptimizerKind{Name: "gt-adam",
	Rule: "m ← β₁·m + (1−β₁)·g, v ← min(β₂·v + (1−β₂)·g², 10⁶), u = m/√(v + ε)",
	Keys: []string{"beta1", "beta2", "eps"}, Adaptive: true, UnitSteps: true,
	New: func(s Settings) Optimizer {
		return GTAdam{Beta1: s.Param("beta1"), Beta2: s.Param("beta2"), Eps: s.Param("eps"), Limit: 1e6}
	},
	Check: func(s Settings) ([]string, error) {
		if s.Param("beta2") == 0 {
			return nil, setting.Invalid("beta2", 0, "gt-adam keeps eps in the mean of squares, whose decay rate "+
				"divides it: expected above 0 and below 1")
		}
		return nil, nil
	}}

func (GTAdam) Vectors() []string { return []string{"exp_avg", "exp_avg_sq"} }

func (GTAdam) InverseGain() float64 { return 0 }

// ScratchVectors is the number of vectors of working memory: one of ones.
func (GTAdam) ScratchVectors() int { return 1 }

func (o GTAdam) Direct(s *State, x device.Vector, decay float64) device.Vector {
	g := s.CorrectedGradient(x)
	if s.ones == nil {
		s.ones = s.newOnes(x.Len())
	}
	grow := o.Eps * (1 - o.Beta2) / o.Beta2 // Eps decays by this much.
	if s.Count++; s.Count == 1 {
		grow = o.Eps / o.Beta2
	}
	v := s.Opt[1]
	s.combine(v, device.Term{A: 1, V: v}, device.Term{A: grow, V: s.ones})
	most := 0.0
	if o.Limit > 0 {
		most = o.Limit + o.Eps
	}
	s.planAdamW(device.Adam{Beta1: o.Beta1, Rest1: 1 - o.Beta1, Beta2: o.Beta2, Rest2: 1 - o.Beta2, Scale1: 1,
		Scale2: 1, Decay: decay, Limit: most}, g, x)
	return g
}

// newOnes returns a vector of n ones.
func (s *State) newOnes(n int) device.Vector {
	v := s.Dev.NewVector(n)
	s.Dev.Write(v, slices.Repeat([]float32{1}, n))
	return v
}
