package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// SketchedSA is FSPDA-SA whose masks are the low-rank sketches of [PowerGossip]: with D what the
// sketch of an edge tells of own - other at time t,
//
//	x ← x - alpha·u - eta·lambda - gamma·ΣD        lambda ← lambda + beta·ΣD
//
// D is a projection of the difference, as a mask's is, but the projection depends on the models,
// which the paper's theory excludes: it is experimental. Invariant: Σ lambda = 0, since both ends
// of an edge add exact negatives. The mean model moves by -alpha·mean(u).
type SketchedSA struct {
	Gamma, Beta float64
	PowerGossip // its descent and its sketches
}

var fspdaSASketch = Method{Name: "fspda-sa-sketch", Keys: []setting.Key{Gamma, Beta}, Check: checkGossipGain,
	New: func(s Settings) Algorithm {
		return SketchedSA{Gamma: s.Param("gamma"), Beta: s.Param("beta"), PowerGossip: newPowerGossip(s, 0)}
	}}

func (SketchedSA) Name() string { return "fspda-sa-sketch" }

func (a SketchedSA) Traits() Traits {
	t := a.PowerGossip.Traits()
	t.Aux, t.Tracked = []string{"lambda"}, Tracked{"lambda", SA{Descent: a.Descent}.limit}
	t.Placements, t.Dual = AnyPlacement, true
	t.Regroup = recentre(saLambda)
	t.About = About{"one product of each matrix with a vector; vectors whole",
		"2·v·(rows or columns of all matrices + rest)·|E_t|", "1; rows + columns of all matrices an edge",
		exactOnSkew + " (measured; experimental)", anyGraph, "FSPDA-SA over the sketches of powergossip"}
	return t
}

func (a SketchedSA) Local(s *State, r *Round) error {
	a.sendSketches(s, r) // before the gradient, so that communication overlaps with it
	return a.Step(s, r, r.Alpha, s.X, device.Term{A: r.Eta, V: s.Aux[saLambda]})
}

func (a SketchedSA) Mix(s *State, r *Round) error {
	a.addSketched(s, r, UnitWeight, device.Term{A: -a.Gamma, V: s.X}, device.Term{A: a.Beta, V: s.Aux[saLambda]})
	return nil
}
