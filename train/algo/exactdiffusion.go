package algo

// ExactDiffusion is [D2] with (I+W)/2 in place of W (Yuan, Ying, Zhao and Sayed 2018), whose
// eigenvalues are not negative.
type ExactDiffusion struct{ D2 }

var exactDiffusion = Method{Name: "exact-diffusion", Check: checkMixing,
	New: func(s Settings) Algorithm { return ExactDiffusion{NewD2(s.Descent)} }}

func (a ExactDiffusion) Traits() Traits {
	t := a.D2.Traits()
	t.HalfLazy = true
	t.Graphs, t.Source = staticGraph, "Yuan, Ying, Zhao and Sayed 2018: d2 with (I+W)/2"
	return t
}
