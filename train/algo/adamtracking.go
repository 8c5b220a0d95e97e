package algo

import "fspda/train/setting"

// AdamTracking is GT-Adam (Carnevale, Farina, Notarnicola and Notarstefano 2022): gradient tracking
// whose tracker [GTAdam] turns into a direction.
type AdamTracking struct{ Tracking }

var adamTracking = Method{Name: "gt-adam",
	Params: []setting.Key{trackingForm(CombineThenAdapt, SemiATC, AdaptThenCombine)},
	New:    func(s Settings) Algorithm { return NewAdamTracking(s.Choice("form"), s.Descent) }}

// NewAdamTracking makes it of a form of gradient tracking and its optimizer.
func NewAdamTracking(form string, d Descent) AdamTracking {
	d.Corrected = true
	return AdamTracking{NewTracking(form, d)}
}

func (a AdamTracking) Traits() Traits {
	t := a.Tracking.Traits()
	t.Optimizers, t.Placements, t.Takes = []string{"gt-adam"}, nil, OwnGradient
	t.About = About{"model and tracker", "4·v·d·|E_t|", "2; form atc 3", "error of the order of alpha", anyGraph,
		"Carnevale, Farina, Notarnicola and Notarstefano 2022"}
	return t
}
