package algo

import "fspda/train/setting"

// MomentumTracking tracks the momenta of the agents instead of their gradients (Takezawa and others
// 2022).
type MomentumTracking struct{ Tracking }

var momentumTracking = Method{Name: "momentum-tracking",
	Params: []setting.Key{trackingForm(CombineThenAdapt, SemiATC, AdaptThenCombine)},
	New:    func(s Settings) Algorithm { return MomentumTracking{NewTracking(s.Choice("form"), s.Descent)} }}

func (a MomentumTracking) Traits() Traits {
	t := a.Tracking.Traits()
	t.Optimizers, t.Placements, t.Takes = AnyMomentum, nil, OwnGradient
	t.About = About{"model and tracker", "4·v·d·|E_t|", "1; form atc 2", exactOnSkew, anyGraph,
		"Takezawa and others 2022"}
	return t
}
