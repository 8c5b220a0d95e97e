package algo

import "fmt"

// Tracking is gradient tracking in one of its forms, which differ in the order of combining and
// adapting: [DIGing], [NEXT] or [DSGT].
type Tracking struct{ Algorithm }

var _ Algorithm = Tracking{}

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

// Traits are those of the form. Its gradients may be of batches.
func (a Tracking) Traits() Traits {
	t := a.Algorithm.Traits()
	t.Exact = false
	t.About = DSGT{}.Traits().About
	return t
}
