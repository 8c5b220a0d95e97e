package algo

import (
	"cmp"
	"math"

	"fspda/device"
	"fspda/train/setting"
)

// NoLoCo is DiLoCo over pairs instead of an all-reduce (Kolehmainen et al. 2025, equations 1 to 3):
// rounds of H local steps, then random pairs of agents. Each agent has a slow model phi, at which a
// round starts, and an outer momentum m. With x the model after the local steps, D = x - phi, and
// means over the pair,
//
//	at the end of a round:  m ← Mu·m + Rate·mean(D) - Pull·(phi - mean(phi))
//	                        phi ← phi + m        x ← phi
//
// An agent without a partner uses its own D and phi. The mean of phi over all agents moves by the
// heavy ball of the mean of D. Agents never agree exactly. Differences stay bounded only if Mu <
// Pull < √(2+Mu²) (equation 74), and not always then: an agent whose partners change goes on for
// 1/(1-Mu) rounds, and with Mu 0.9 it passes the mean of each pair.
//
// Departure: equation 2 prints the sign of D that climbs; this is that of its proof and of its
// released program.
type NoLoCo struct {
	H    int     // local steps of a round
	Rate float64 // step size of the outer optimizer
	Mu   float64 // its momentum
	Pull float64 // gain towards the pair's mean of the slow models
	Descent
}

var noloco = Method{Name: "noloco", Keys: []setting.Key{LocalSteps}, Check: nolocoStable,
	Params: []setting.Key{outerRate, outerMomentum(0.5, "heavy ball of the outer steps"), {Name: "pull",
		Range: "[0, 2)", Help: "gain towards the pair's mean of the slow models; 0 is outer_lr"}},
	New: func(s Settings) Algorithm {
		return NoLoCo{H: s.Whole("local_steps"), Rate: s.Param("outer_lr"), Mu: s.Param("outer_momentum"),
			Pull: pull(s), Descent: s.Descent}
	}}

// pull is the gain towards the pair's mean.
func pull(s Settings) float64 { return cmp.Or(s.Param("pull"), s.Param("outer_lr")) }

// nolocoStable refuses gains at which the slow models of pairs drift apart: those that equation 74
// of the paper excludes, and those at which a pair passes its mean before its agents meet again.
func nolocoStable(r Run) ([]string, error) {
	s := r.Settings()
	mu, pull := s.Param("outer_momentum"), pull(s)
	if most := math.Sqrt(2 + float64(mu*mu)); !(pull > mu && pull < most) {
		return nil, setting.Invalid("params.pull", pull, "must be above outer_momentum %v and below %.4g, or the slow "+
			"models of the agents drift apart", mu, most)
	}
	return nil, r.CheckMomentum("params.outer_momentum", GossipMomentum{MomentumRule: SumOfPulls{}, Mu: mu,
		Steps: s.Whole("local_steps"), Weight: pull / 2})
}

const (
	nolocoStart = iota // in State.Aux: phi
	nolocoOuter        // m
)

func (NoLoCo) Name() string { return "noloco" }

func (a NoLoCo) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"start", "outer_momentum"}},
		Exchange:   Exchange{Edges: RoundPairs, Vectors: 2}, // D and phi
		Rounds:     Rounds{Period: a.H, Scheduled: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: keepVectors},
		About: About{"the change of the model over a round, and where it began", "4·v·d a pair and round", "2",
			"bias, which grows with local_steps", "any graph, pairs, at the end of a round",
			"Kolehmainen and others 2025, equations 1 to 3"},
	}
}

func (a NoLoCo) Local(s *State, r *Round) error {
	start, m := s.Aux[nolocoStart], s.Aux[nolocoOuter]
	if r.T%a.H == 0 {
		s.combine(start, device.Term{A: 1, V: s.X})
	}
	if err := a.Step(s, r, r.Alpha, s.X); err != nil || (r.T+1)%a.H != 0 {
		return err
	}
	moved := s.g // the gradient is no longer needed
	s.combine(moved, device.Term{A: 1, V: s.X}, device.Term{A: -1, V: start})
	s.Send(r, moved, start)
	s.combine(m, device.Term{A: a.Mu, V: m}, device.Term{A: a.Rate, V: moved})
	return nil
}

func (a NoLoCo) Mix(s *State, r *Round) error {
	if (r.T+1)%a.H != 0 {
		return nil
	}
	start, m := s.Aux[nolocoStart], s.Aux[nolocoOuter]
	s.AddDifferences(r, 0, UnitWeight, device.Term{A: -a.Rate / 2, V: m})
	s.AddDifferences(r, 1, UnitWeight, device.Term{A: -a.Pull / 2, V: m})
	s.combine(s.X, device.Term{A: 1, V: start}, device.Term{A: 1, V: m})
	return nil
}
