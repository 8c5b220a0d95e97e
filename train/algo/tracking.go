package algo

import (
	"fmt"

	"fspda/train/setting"
)

// Tracking is gradient tracking in one of its forms, which differ in the order of combining and
// adapting: [DIGing], [NEXT] or [DSGT].
type Tracking struct{ Algorithm }

var dsgt = Method{Name: "dsgt", Params: []setting.Key{trackingForm(SemiATC, CombineThenAdapt, AdaptThenCombine)},
	New: func(s Settings) Algorithm { return NewTracking(s.Choice("form"), s.Descent) }}

// trackingForm is the parameter that chooses the form.
func trackingForm(forms ...string) setting.Key {
	return setting.Key{Name: "form", Choices: forms, Help: "order of combining and adapting: cta, W x - alpha y; " +
		"semi-atc, W(x - alpha y), of models only; atc, of both, with two exchanges in an iteration"}
}

// The forms of gradient tracking.
const (
	CombineThenAdapt = "cta"      // W x - alpha·y
	SemiATC          = "semi-atc" // W(x - alpha·y), of models alone
	AdaptThenCombine = "atc"      // Of models and trackers, with two exchanges in an iteration.
)

// NewTracking makes gradient tracking of a form.
func NewTracking(form string, d Descent) Tracking {
	switch form {
	case CombineThenAdapt:
		return Tracking{DIGing{Descent: d}}
	case SemiATC:
		return Tracking{NEXT{Descent: d}}
	case AdaptThenCombine:
		return Tracking{DSGT{d}}
	}
	panic(fmt.Sprintf("algo: unknown form of gradient tracking %q", form))
}

// Traits returns the traits of the form. Its gradients may be of batches.
func (a Tracking) Traits() Traits {
	t := a.Algorithm.Traits()
	t.Exact = false
	t.About = DSGT{}.Traits().About
	return t
}
