package algo

// MomentumTracking tracks the momenta of the agents instead of their gradients (Takezawa and others
// 2022).
type MomentumTracking struct{ Tracking }

var _ Algorithm = MomentumTracking{}

func (a MomentumTracking) Traits() Traits {
	t := a.Tracking.Traits()
	t.Optimizers, t.Placements, t.Takes = AnyMomentum, nil, OwnGradient
	t.About = About{"model and tracker", "nE 4 v d", "1; form atc 2", exactOnSkew, anyGraph,
		"Takezawa and others 2022"}
	return t
}
