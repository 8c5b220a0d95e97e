package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fspda/train/algo"
	"fspda/train/setting"
)

const (
	placementLocal     = "local"
	placementCorrected = "corrected"

	decayCoupled   = "coupled"
	decayDecoupled = "decoupled"
)

// admits lists the optimizers that a method takes, its default first.
func (m method) admits() (list []Optimizer) {
	if m.traits.Optimizers == nil {
		return []Optimizer{optimizerNamed("")}
	}
	for _, name := range m.traits.Optimizers {
		if name == algo.Any {
			list = append(list, optimizersWith(func(o Optimizer) bool { return o.General })...)
		} else {
			list = append(list, optimizerNamed(name))
		}
	}
	return list
}

func (m method) takesOne(has func(o Optimizer) bool) bool {
	return slices.ContainsFunc(m.admits(), has)
}

func (m method) takes(name string) bool {
	return m.takesOne(func(o Optimizer) bool { return o.Name == name })
}

// takesMomentum reports whether a method takes an optimizer that reads the key momentum.
func (m method) takesMomentum() bool {
	return m.takesOne(func(o Optimizer) bool { return o.Momentum > 0 })
}

// takesAny reports whether a method takes all optimizers that are General.
func (m method) takesAny() bool {
	return !slices.ContainsFunc(optimizersWith(func(o Optimizer) bool { return o.General }),
		func(o Optimizer) bool { return !m.takes(o.Name) })
}

// autoOptimizer returns the optimizer that auto stands for.
func (m method) autoOptimizer(momentum float64) Optimizer {
	list, first := m.admits(), optimizerNamed("")
	if !m.takes(first.Name) {
		return list[0]
	}
	if at := slices.IndexFunc(list, func(o Optimizer) bool { return o.Momentum > 0 }); momentum != 0 && at >= 0 {
		return list[at]
	}
	return first
}

// optimizerOf returns the optimizer that c names, or that auto stands for.
func (c Config) optimizerOf(m method) Optimizer {
	if c.Optimizer == auto {
		return m.autoOptimizer(c.Momentum)
	}
	return optimizerNamed(c.Optimizer)
}

func (r Resolved) optimizer() Optimizer { return optimizerNamed(string(r.Optimizer)) }

// ClipsApart reports whether an agent clips a gradient from which it has to take the L2 term out.
func (s *Setup) ClipsApart() bool { return s.Config.clipsApart() }

func (r Resolved) clipsApart() bool { return r.ClipNorm > 0 && r.L2() > 0 }

// settleOptimizer resolves auto in the keys of the optimizer, and refuses those without effect. It
// reads nothing but the keys, because the loss of the network depends on what it finds.
func (r *Resolved) settleOptimizer(m method) (warnings []string, err error) {
	others := func() string { return strings.Join(withFeature(method.takesAny), ", ") }
	decouples := func(o Optimizer) bool { return o.Decoupled }
	switch {
	case r.Momentum != 0 && !m.takesMomentum():
		return nil, Invalid("momentum", r.Momentum,
			"%s has no heavy ball: set momentum 0, or choose an algorithm that "+
				"has one (%s)", m.Name, others())
	case r.Optimizer != "" && !m.takes(string(r.Optimizer)) && !r.optimizer().General:
		return nil, Invalid("optimizer", r.Optimizer, "%s is stated for %s: use optimizer auto, or an algorithm that "+
			"takes this one (%s)", m.Name, strings.Join(namesOf(m.admits()), " or "),
			strings.Join(withFeature(func(m method) bool { return m.takes(string(r.Optimizer)) }), ", "))
	case r.Optimizer != "" && !m.takes(string(r.Optimizer)):
		return nil, Invalid("optimizer", r.Optimizer,
			"%s is stated for %s: use optimizer auto, or an algorithm that takes "+
				"any (%s)", m.Name, strings.Join(namesOf(m.admits()), " or "), others())
	case r.DecayForm == decayDecoupled && !m.takesOne(decouples):
		return nil, Invalid("decay_form", r.DecayForm, "%s takes gradients as they are: use decay_form coupled, or an "+
			"algorithm that takes any optimizer (%s)", m.Name, others())
	}
	if r.Optimizer == "" {
		r.Optimizer = Chosen(m.autoOptimizer(r.Momentum).Name)
	}
	o := r.optimizer()
	if r.Momentum != 0 && o.Momentum == 0 {
		return nil, Invalid("momentum", r.Momentum, "%s has no such factor: use optimizer %s, or beta1 of %s",
			r.Optimizer, setting.Either(readers("momentum")), readers("beta1")[0])
	}
	r.Momentum = cmp.Or(r.Momentum, o.Momentum)
	if err := r.refuseKeys(o); err != nil {
		return nil, err
	}
	warnings, err = r.settlePlacement(m)
	return warnings, errors.Join(err, r.settleDecay())
}

// refuseKeys refuses keys that only other optimizers read, where one of them has a value.
func (r *Resolved) refuseKeys(o Optimizer) error {
	var unread []string
	set := false
	keys := optimizerKeys()
	for _, f := range r.given.fields() {
		if slices.Contains(keys, f.Name) && !reads(o, f.Name) {
			unread, set = append(unread, f.Name), set || !f.isDefault()
		}
	}
	if !set {
		return nil
	}
	return Invalid("optimizer", o.Name, "does not use %s: leave them out, or use %s", both(unread),
		readers(unread[0])[0])
}

// both joins names by "and".
func both(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// settlePlacement resolves where the correction of the method enters.
func (r *Resolved) settlePlacement(m method) (warnings []string, err error) {
	asked := r.Placement != ""
	o := r.optimizer()
	switch {
	case !asked:
		r.Placement = Chosen(r.given.usualPlacement(m, o))
	case len(m.traits.Placements) == 0:
		return nil, Invalid("placement", r.Placement, "%s has no correction that could be placed: use placement auto",
			m.Name)
	case o.New == nil:
		return nil, Invalid("placement", r.Placement, "both are the same with optimizer %s: use placement auto", o.Name)
	case o.Adaptive && r.Placement == placementCorrected && len(m.traits.Placements) == 1:
		return nil, Invalid("placement", r.Placement,
			"the correction of %s is made of preconditioned steps, so it cannot "+
				"correct the gradient: use placement local", m.Name)
	}
	if r.Objective == "samples" && o.Adaptive && o.General && r.Placement != placementCorrected &&
		m.traits.Takes != algo.MeanGradient {
		return nil, Invalid("objective", r.Objective,
			"%s divides a gradient by its own size, and with it the weight of "+
				"an agent's data, so that it has no effect: use objective agents, another optimizer, or placement "+
				"corrected if the method has it", o.Name)
	}
	if asked && r.Momentum > 0 && r.Placement == placementCorrected && m.traits.Takes != algo.TrackedGradient {
		warnings = append(warnings, fmt.Sprintf("placement corrected lets the correction of %s pass through "+
			"momentum %v, and so act up to %.3g iterations late: differences between agents may grow; placement local "+
			"has no such delay", m.Name, r.Momentum, 1/(1-r.Momentum)))
	}
	if asked && o.Adaptive && r.Placement == placementLocal && len(m.traits.Placements) > 0 {
		warnings = append(warnings, o.Name+" outside the correction (placement local) ends where the agents' "+
			"preconditioned gradients balance, which is no minimum if they hold different data")
	}
	return warnings, nil
}

// usualPlacement is what placement auto comes to: the first of the method's with an adaptive
// optimizer, and with a linear one local, except for gradient tracking. Language models have local
// also with an adaptive one, where the method allows it: with corrected their duals, times
// eta/alpha, outweigh their clipped gradients, and they do not learn.
func (c Config) usualPlacement(m method, o Optimizer) string {
	switch {
	case len(m.traits.Placements) == 0, o.New == nil:
		return "" // no effect
	case m.traits.Takes == algo.TrackedGradient:
		return m.traits.Placements[0]
	case o.Adaptive:
		if _, language := c.language(); language && slices.Contains(m.traits.Placements, placementLocal) {
			return placementLocal
		}
		return m.traits.Placements[0]
	}
	return placementLocal
}

// settleDecay resolves decay_form and refuses factors of step sizes that the optimizer would undo.
func (r *Resolved) settleDecay() error {
	if r.DecayForm != "" && r.WeightDecay == 0 {
		return Invalid("decay_form", r.DecayForm, "weight_decay is 0, so that it has no effect: leave one of them out")
	}
	if r.WeightDecay > 0 && r.DecayForm == "" {
		r.DecayForm = decayCoupled
		if r.optimizer().Decoupled {
			r.DecayForm = decayDecoupled
		}
	}
	if o := r.optimizer(); o.OnlyDecoupled && r.DecayForm == decayCoupled {
		return Invalid("decay_form", r.DecayForm, "%s takes the size of an L2 term out of the gradient: use "+
			"decay_form %s", o.Name, decayDecoupled)
	}
	switch {
	case r.LayerLR == "":
	case r.clipsApart():
		return Invalid("layer_lr", r.LayerLR, "also multiplies the L2 term, so that clip_norm cannot leave it out: "+
			"use weight_decay 0, or clip_norm 0")
	case r.optimizer().UnitSteps:
		return Invalid("layer_lr", r.LayerLR, "%s divides a gradient by its own size, and with it the factor: use "+
			"another optimizer, or leave layer_lr out", r.Optimizer)
	case r.DecayForm == decayDecoupled:
		return Invalid("layer_lr", r.LayerLR, "does not apply to decoupled weight decay: use decay_form coupled")
	}
	return nil
}

// Descent is the optimizer of the resolved keys, for the algorithm of a method.
func (s *Setup) Descent() algo.Descent {
	c := s.Config
	d := algo.Descent{Corrected: c.Placement == placementCorrected}
	if o := c.optimizer(); o.New != nil {
		d.Opt = o.New(c.optimizerSettings(o, s.ModelSize))
	}
	if c.DecayForm == decayDecoupled {
		d.Decay = &algo.Decay{Rate: c.WeightDecay, Except: s.Undecayed}
		if c.optimizer().ExceptsItself {
			d.Decay.Except = nil
		}
	}
	return d
}

// inertOptimizer reports whether the momentum alone tells which optimizer a run has, as before the
// key existed.
func inertOptimizer(r setting.Run) bool {
	name := r.Given("optimizer")
	general := method{traits: algo.Traits{Updates: algo.Updates{Optimizers: algo.AnyOptimizer}}}
	return name == auto || name == general.autoOptimizer(0).Name || name == general.autoOptimizer(1).Name
}

// inertPlacement reports whether the placement is the usual one.
func inertPlacement(r setting.Run) bool {
	c := r.(question).given
	m, ok := c.findMethod()
	return c.Placement == auto || ok && c.Placement == cmp.Or(c.usualPlacement(m, c.optimizerOf(m)), auto)
}

// inertDecay reports whether weight decay is in the gradient, as before the key existed.
func inertDecay(r setting.Run) bool {
	form := r.Given("decay_form")
	return form == auto || form == decayCoupled
}
