package algo

import "fspda/train/setting"

// GTDSGDm is gradient tracking with momentum behind the tracker.
type GTDSGDm struct{ Tracking }

var gtDSGDm = Method{Name: "gt-dsgdm",
	Params: []setting.Key{trackingForm(SemiATC, CombineThenAdapt, AdaptThenCombine)},
	New:    func(s Settings) Algorithm { return NewGTDSGDm(s.Choice("form"), s.Descent) }}

// NewGTDSGDm makes it of a form of gradient tracking and a momentum.
func NewGTDSGDm(form string, d Descent) GTDSGDm {
	d.Corrected = true
	return GTDSGDm{NewTracking(form, d)}
}

func (a GTDSGDm) Traits() Traits {
	t := a.Tracking.Traits()
	t.Optimizers, t.Placements, t.Takes = AnyMomentum, nil, OwnGradient
	t.About = About{"model and tracker", "4·v·d·|E_t|", "1; form atc 2", exactOnSkew, anyGraph,
		"dsgt with momentum behind the tracker"}
	return t
}
