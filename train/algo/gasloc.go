package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// GASLoC is gossip with accelerated steps after local ones (Cagnasso, Belilovsky and Oyallon 2026).
// It is experimental: we know a description of the recursion, not the authors' program nor their
// defaults. Rounds of H local steps start at a slow model phi; y' is the y of the round before, x^0
// at the start. With x the model after the local steps and D = own - other of y,
//
//	at the end of a round:  y = phi + Rate·(x - phi)
//	                        phi ← y - Gamma·ΣD + Mu·(y - y')        x ← phi
//
// Gamma 0.5 averages a pair. The momentum contains the averaging, as that of [DecentLaM] does: with
// random pairs and Gamma 0.5, differences between agents grow if Mu is above about 0.6 to 0.8, and
// below it they vanish faster than without. The mean of phi obeys phi ← y + Mu·(y - y') of the
// means, for every graph. Agents that are alike follow DiLoCo exactly. With Mu 0 and H 1 it is
// DSGD.
type GASLoC struct {
	H     int     // local steps of a round
	Rate  float64 // step size of the outer optimizer
	Mu    float64 // its momentum
	Gamma float64 // gossip step size
	Descent
}

var gasloc = Method{Name: "gasloc", Keys: []setting.Key{LocalSteps, Gamma}, Check: gaslocStable,
	Params: []setting.Key{outerRate, outerMomentum(0.5, "momentum of the outer steps, which contains the averaging")},
	New: func(s Settings) Algorithm {
		return GASLoC{H: s.Whole("local_steps"), Rate: s.Param("outer_lr"), Mu: s.Param("outer_momentum"),
			Gamma: s.Param("gamma"), Descent: s.Descent}
	}}

// gaslocStable also refuses a momentum at which differences between agents grow: without gradients
// the slow models move as the models of [DecentLaM] do, once a round.
func gaslocStable(r Run) ([]string, error) {
	s := r.Settings()
	warnings, err := r.CheckGain("gamma", s.Param("gamma"), 0)
	if err != nil {
		return warnings, err
	}
	return warnings, r.CheckMomentum("params.outer_momentum", GossipMomentum{MomentumRule: SumOfPulls{},
		Mu: s.Param("outer_momentum"), Steps: s.Whole("local_steps"), Weight: s.Param("gamma")})
}

const (
	gaslocStart = iota // in State.Aux: phi
	gaslocPast         // y'
)

func (GASLoC) Name() string { return "gasloc" }

func (a GASLoC) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"start", "past"}},
		Exchange:   Exchange{Edges: RoundEdges},
		Rounds:     Rounds{Period: a.H, Scheduled: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Shifts: true},
		Membership: Membership{Regroup: a.regroup},
		About: About{"the slow model, at the end of a round", "2·v·d·|E_t| a round", "2",
			"bias, which grows with local_steps",
			"any graph, at the end of a round; outer_momentum below about 0.6 in pairs",
			"Cagnasso, Belilovsky and Oyallon 2026; experimental"},
	}
}

// regroup starts the momentum of new members at rest.
func (GASLoC) regroup(s *State, g *Group) error {
	if g.Joins() {
		s.copy(s.Aux[gaslocPast], s.X)
	}
	return nil
}

func (a GASLoC) Local(s *State, r *Round) error {
	start, past := s.Aux[gaslocStart], s.Aux[gaslocPast]
	if r.T == 0 {
		s.combine(past, device.Term{A: 1, V: s.X})
	}
	if r.T%a.H == 0 {
		s.combine(start, device.Term{A: 1, V: s.X})
	}
	if err := a.Step(s, r, r.Alpha, s.X); err != nil || (r.T+1)%a.H != 0 {
		return err
	}
	y := s.g // the gradient is no longer needed
	s.combine(y, device.Term{A: 1 - a.Rate, V: start}, device.Term{A: a.Rate, V: s.X})
	s.Send(r, y)
	s.combine(s.X, device.Term{A: 1 + a.Mu, V: y}, device.Term{A: -a.Mu, V: past})
	s.combine(past, device.Term{A: 1, V: y})
	return nil
}

func (a GASLoC) Mix(s *State, r *Round) error {
	s.AddDifferences(r, 0, UnitWeight, device.Term{A: -a.Gamma, V: s.X})
	return nil
}
