package algo

// EDM is [D2] with momentum (Hu and others 2025).
type EDM struct{ D2 }

var edm = Method{Name: "edm", Check: checkDiffusion,
	New: func(s Settings) Algorithm { return EDM{NewD2(s.Descent)} }}

func (a EDM) Traits() Traits {
	t := a.D2.Traits()
	t.Optimizers, t.Placements = AnyMomentum, nil
	t.Source = "Hu and others 2025: d2 with momentum"
	return t
}
