package algo

import (
	"slices"

	"fspda/device"
	"fspda/train/setting"
)

// DiLoCo takes rounds of H local steps, then one step of an outer optimizer by all agents together
// (Douillard et al. 2023, algorithm 1). All hold the same slow model phi, at which a round starts,
// and the same outer momentum b. With x the model after the local steps,
//
//	at the end of a round:  D = mean of (phi - x)
//	                        b ← Mu·b + D        phi ← phi - Rate·(D + Mu·b)        x ← phi
//
// which is PyTorch's Nesterov momentum with D as the gradient. All agents sum in the order of their
// numbers, so their copies of phi and b stay bit-identical. The inner optimizer keeps its state
// over rounds, and it is not averaged unless [Moments] says so. With Rate 1 and Mu 0 it is local
// SGD, x ← mean of x.
//
// Departure: the step of the outer optimizer comes after exactly H local steps in every round.
type DiLoCo struct {
	H    int     // local steps of a round
	Rate float64 // step size of the outer optimizer
	Mu   float64 // its momentum; 0: there is no b
	Moments
	Reduce Reduction // nil is Exact
	Descent
}

var diloco = Method{Name: "diloco", Keys: []setting.Key{LocalSteps}, Check: outerInTime,
	Params: slices.Concat([]setting.Key{outerRate, outerMomentum(0.9, "Nesterov momentum of the outer steps")},
		momentKeys(0, 0), reductionKeys(), []setting.Key{outerKey}),
	New: func(s Settings) Algorithm {
		if outer := s.Choice("outer"); outer != outerNow {
			return LateDiLoCo{Eager: outer == outerEager, Agents: s.Agents, DiLoCo: newRounds(s)}
		}
		return newRounds(s)
	}}

// MuLoCo is DiLoCo with Muon inside of rounds (Thérien and others 2025). It has no recursion of its
// own.
type MuLoCo struct{ DiLoCo }

var muloco = Method{Name: "muloco", Keys: []setting.Key{LocalSteps}, Check: outerSteps,
	Params: slices.Concat([]setting.Key{{Name: outerRate.Name, Default: 0.9, Range: outerRate.Range,
		Help: outerRate.Help}, outerMomentum(0.8, "Nesterov momentum of the outer steps")}, momentKeys(0, 0),
		reductionKeys()),
	New: func(s Settings) Algorithm { return MuLoCo{newRounds(s)} }}

func (MuLoCo) Name() string { return "muloco" }

func (a MuLoCo) Traits() Traits {
	t := a.DiLoCo.Traits()
	t.Optimizers = []string{muonKind.Name}
	t.About.Source = "Thérien and others 2025: DiLoCo with Muon"
	return t
}

// newRounds makes it with rounds of local_steps, averages of the optimizer, and quantized messages.
func newRounds(s Settings) DiLoCo {
	a := newDiLoCo(s, s.Whole("local_steps"))
	a.Moments, a.Reduce = newMoments(s), newReduction(s)
	return a
}

// outerInTime is outerSteps for a method whose outer steps may be late.
func outerInTime(r Run) ([]string, error) {
	s := r.Settings()
	plain := s.Choice("quantize") == "none" && newMoments(s) == (Moments{})
	if outer := s.Choice("outer"); outer != outerNow && !plain {
		return nil, setting.Invalid("params.outer", outer,
			"takes plain changes of the round before: use quantize none, "+
				"moment_rounds 0 and square_rounds 0, or outer now")
	}
	return outerSteps(r)
}

// outerSteps refuses settings of rounds that do not fit together.
func outerSteps(r Run) ([]string, error) {
	s := r.Settings()
	if q := s.Choice("quantize"); q != "none" && newMoments(s) != (Moments{}) {
		return nil, setting.Invalid("params.quantize", q, "quantizes changes of the model, and not the averages of "+
			"the optimizer: use quantize none, or moment_rounds 0 and square_rounds 0")
	}
	if _, err := momentsKept(r); err != nil {
		return nil, err
	}
	return reduced(r)
}

// newDiLoCo makes it with rounds of h steps.
func newDiLoCo(s Settings, h int) DiLoCo {
	return DiLoCo{H: h, Rate: s.Param("outer_lr"), Mu: s.Param("outer_momentum"), Descent: s.Descent}
}

// outerRate and outerMomentum are the parameters of outer steps.
var outerRate = setting.Key{Name: "outer_lr", Default: 0.7, Range: "(0, 2]", Help: "step size of the outer steps"}

func outerMomentum(usual float64, help string) setting.Key {
	return setting.Key{Name: "outer_momentum", Default: usual, Range: "[0, 1)", Help: help}
}

const (
	dilocoStart = iota // in State.Aux: phi
	dilocoOuter        // b
)

func (DiLoCo) Name() string { return "diloco" }

func (a DiLoCo) Traits() Traits {
	t := Traits{
		Memory:     Memory{Aux: []string{"start", "outer_momentum"}},
		Exchange:   a.exchange(Exchange{}),
		Rounds:     Rounds{Period: a.H, Scheduled: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: a.regroup},
		About: About{"the change of the model over a round, an all-reduce at its end", "2·(n-1)·v·d a round", "2",
			"bias, which grows with local_steps", "none", "Douillard and others 2023, algorithm 1"},
	}
	if a.Mu == 0 {
		t.Aux = []string{"start"}
	}
	t.Reduce = a.reduce
	reduction(a.Reduce).declare(&t)
	return t
}

// regroup gives new members the slow model and the outer momentum, which are the same at all.
func (a DiLoCo) regroup(s *State, g *Group) error {
	if a.Mu == 0 {
		return g.Copy(s.Aux[dilocoStart])
	}
	return g.Copy(s.Aux[dilocoStart], s.Aux[dilocoOuter])
}

func (a DiLoCo) Local(s *State, r *Round) error {
	start := s.Aux[dilocoStart]
	if r.T%a.H == 0 {
		s.combine(start, device.Term{A: 1, V: s.X})
	}
	if err := a.Step(s, r, r.Alpha, s.X); err != nil {
		return err
	}
	if (r.T+1)%a.H == 0 { // the gradient is no longer needed
		s.combine(s.g, device.Term{A: 1, V: start}, device.Term{A: -1, V: s.X})
		more, n := a.due(s, (r.T+1)/a.H)
		by := reduction(a.Reduce)
		kept := s.kept(by)
		return by.post(s, r, by.fold(s, s.g, kept), kept, more[:n]...)
	}
	return nil
}

func (a DiLoCo) reduce(s *State, r *Round) error {
	_, _, err := reduction(a.Reduce).sum(s, r, a.Name(), nil)
	_, n := a.due(s, (r.T+1)/a.H)
	for k := 0; k < n && err == nil; k++ {
		_, err = s.sumAll(a.Name(), r, 1+k, nil)
	}
	return err
}

func (a DiLoCo) Mix(s *State, r *Round) error {
	if (r.T+1)%a.H != 0 {
		return nil
	}
	sum, share, err := reduction(a.Reduce).sum(s, r, a.Name(), s.g)
	if err != nil {
		return err
	}
	a.outerStep(s, sum, share)
	return a.average(s, r)
}

// outerStep takes the outer step of share times sum.
func (a DiLoCo) outerStep(s *State, sum device.Vector, share float64) {
	if a.Mu == 0 {
		s.combine(s.X, device.Term{A: 1, V: s.Aux[dilocoStart]}, device.Term{A: -a.Rate * share, V: sum})
		return
	}
	b := s.Aux[dilocoOuter]
	s.combine(b, device.Term{A: a.Mu, V: b}, device.Term{A: share, V: sum})
	s.combine(s.X, device.Term{A: 1, V: s.Aux[dilocoStart]}, device.Term{A: -a.Rate * share, V: sum},
		device.Term{A: -a.Rate * a.Mu, V: b})
}

// average sets the vectors of the optimizer that came with the message to their means.
func (a DiLoCo) average(s *State, r *Round) error {
	more, n := a.due(s, (r.T+1)/a.H)
	for k := 0; k < n && len(r.Links) > 0; k++ {
		sum, err := s.sumAll(a.Name(), r, 1+k, s.g)
		if err != nil {
			return err
		}
		s.combine(more[k], device.Term{A: 1 / float64(len(r.Links)+1), V: sum})
	}
	return nil
}
