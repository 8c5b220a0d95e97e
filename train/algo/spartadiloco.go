package algo

import "fspda/train/setting"

// SPARTADiLoCo is DiLoCo whose agents also average a few coordinates within a round, as [SPARTA]
// does (exogym 2025). In the last iteration of a round all coordinates are averaged by the outer
// step, so that SPARTA's average, which leaves their mean as it is, is left out:
//
//	x ← x - alpha·u        x[k] ← mean of x[k]
//	at the end of a round, instead of the average:  x ← phi ← outer step of DiLoCo
//
// The slow models and the outer momenta of all agents stay bit-identical.
type SPARTADiLoCo struct {
	Every int // iterations from one average to the next, of which H is a multiple
	DiLoCo
}

var spartaDiLoCo = Method{Name: "sparta-diloco", Keys: []setting.Key{LocalSteps}, Check: wholeOuterSteps,
	Params: []setting.Key{{Name: "outer_steps", Default: 10, Range: "[2, inf)", Whole: true,
		Help: "iterations from one outer step to the next: a multiple of local_steps"}, outerRate,
		outerMomentum(0.9, "Nesterov momentum of the outer steps")},
	New: func(s Settings) Algorithm {
		return SPARTADiLoCo{Every: s.Whole("local_steps"), DiLoCo: newDiLoCo(s, s.Whole("outer_steps"))}
	}}

// wholeOuterSteps refuses outer steps between two averages, or at each of them.
func wholeOuterSteps(r Run) ([]string, error) {
	h, every := r.Settings().Whole("outer_steps"), r.Settings().Whole("local_steps")
	if h%every != 0 || h == every {
		return nil, setting.InsteadOf("params.outer_steps", h, 10*every, "is no multiple of local_steps above it, "+
			"which is %d: outer steps are taken where models are averaged, and not each time, as with %d; diloco "+
			"takes no averages in between", every, 10*every)
	}
	return nil, nil
}

func (SPARTADiLoCo) Name() string { return "sparta-diloco" }

func (a SPARTADiLoCo) Traits() Traits {
	t := a.DiLoCo.Traits()
	t.Reduce = a.reduce
	t.Masks, t.Period, t.WholeEvery, t.LocalSteps = true, a.Every, a.H, 1
	t.About = About{"as sparta, and at the end of a round the change of the model over it",
		"2·(n-1)·v·k, and 2·(n-1)·v·d a round", "2", "bias, which grows with outer_steps", "none",
		"exogym 2025; Douillard and others 2023"}
	return t
}

// averages is SPARTA within a round.
func (a SPARTADiLoCo) averages() SPARTA { return SPARTA{Every: a.Every, Descent: a.Descent} }

func (a SPARTADiLoCo) Local(s *State, r *Round) error {
	if (r.T+1)%a.H == 0 {
		return a.DiLoCo.Local(s, r)
	}
	if r.T%a.H == 0 {
		s.copy(s.Aux[dilocoStart], s.X)
	}
	return a.averages().Local(s, r)
}

func (a SPARTADiLoCo) reduce(s *State, r *Round) error {
	if (r.T+1)%a.H == 0 {
		return a.DiLoCo.reduce(s, r)
	}
	return a.averages().reduce(s, r)
}

func (a SPARTADiLoCo) Mix(s *State, r *Round) error {
	if (r.T+1)%a.H == 0 {
		return a.DiLoCo.Mix(s, r)
	}
	return a.averages().Mix(s, r)
}
