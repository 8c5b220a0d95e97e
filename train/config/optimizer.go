package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fspda/train/algo"
)

// The values of the keys of the optimizer, besides auto.
const (
	optimizerSGD       = "sgd"
	optimizerHeavyBall = "heavy-ball"
	optimizerNesterov  = "nesterov"
	optimizerAdamW     = "adamw"
	optimizerGTAdam    = "gt-adam"
	optimizerDeMo      = "demo"

	placementLocal     = "local"
	placementCorrected = "corrected"

	decayCoupled   = "coupled"
	decayDecoupled = "decoupled"
)

// defaultMomentum is that of heavy-ball and nesterov where momentum is 0.
const defaultMomentum = 0.9

// takes reports whether a method takes an optimizer.
func (m Method) takes(optimizer string) bool {
	return slices.Contains(m.traits.Optimizers, optimizer) || m.traits.Optimizers == nil && optimizer == optimizerSGD
}

// adaptive reports whether the optimizer divides gradients by their size.
func (r Resolved) adaptive() bool {
	return r.Optimizer == optimizerAdamW || r.Optimizer == optimizerGTAdam
}

// unitSteps reports whether the size of a step follows from alpha, and not from the gradient.
func (r Resolved) unitSteps() bool { return r.adaptive() || r.Optimizer == optimizerDeMo }

// ClipsApart reports whether an agent clips a gradient from which it has to take the L2 term out.
func (s *Setup) ClipsApart() bool { return s.Config.clipsApart() }

func (r Resolved) clipsApart() bool { return r.ClipNorm > 0 && r.L2() > 0 }

// settleOptimizer resolves auto in the keys of the optimizer, and refuses those without effect. It
// reads nothing but the keys, because the loss of the network depends on what it finds.
func (r *Resolved) settleOptimizer(m Method) (warnings []string, err error) {
	others := func() string {
		return strings.Join(withFeature(func(m Method) bool { return m.takes(optimizerAdamW) }), ", ")
	}
	switch {
	case r.Momentum != 0 && !m.takes(optimizerHeavyBall):
		return nil, Invalid("momentum", r.Momentum,
			"%s has no heavy ball: set momentum 0, or choose an algorithm that "+
				"has one (%s)", m.Name, others())
	case r.Optimizer != "" && !m.takes(string(r.Optimizer)):
		return nil, Invalid("optimizer", r.Optimizer,
			"%s is stated for %s: use optimizer auto, or an algorithm that takes "+
				"any (%s)", m.Name, cmp.Or(strings.Join(m.traits.Optimizers, " or "), optimizerSGD), others())
	case r.DecayForm == decayDecoupled && !m.takes(optimizerAdamW) && !m.takes(optimizerDeMo):
		return nil, Invalid("decay_form", r.DecayForm, "%s takes gradients as they are: use decay_form coupled, or an "+
			"algorithm that takes any optimizer (%s)", m.Name, others())
	}
	if r.Optimizer == "" {
		r.Optimizer = optimizerSGD
		if !m.takes(optimizerSGD) {
			r.Optimizer = Chosen(m.traits.Optimizers[0])
		} else if r.Momentum > 0 {
			r.Optimizer = optimizerHeavyBall
		}
	}
	switch r.Optimizer {
	case optimizerSGD, optimizerAdamW, optimizerGTAdam, optimizerDeMo:
		if r.Momentum != 0 {
			return nil, Invalid("momentum", r.Momentum,
				"%s has no such factor: use optimizer heavy-ball or nesterov, or "+
					"beta1 of adamw", r.Optimizer)
		}
	case optimizerHeavyBall, optimizerNesterov:
		r.Momentum = cmp.Or(r.Momentum, defaultMomentum)
	}
	if d := Default(); !r.adaptive() && (r.Beta1 != d.Beta1 || r.Beta2 != d.Beta2 || r.Eps != d.Eps) {
		return nil, Invalid("optimizer", r.Optimizer, "does not use beta1, beta2 and eps: leave them out, or use adamw")
	}
	if r.Optimizer == optimizerGTAdam && r.Beta2 == 0 {
		return nil, Invalid("beta2", r.Beta2, "gt-adam keeps eps in the mean of squares, whose decay rate divides it: "+
			"expected above 0 and below 1")
	}
	warnings, err = r.settlePlacement(m)
	return warnings, errors.Join(err, r.settleDecay())
}

// settlePlacement resolves where the correction of the method enters.
func (r *Resolved) settlePlacement(m Method) (warnings []string, err error) {
	asked := r.Placement != ""
	switch adaptive := r.Optimizer == optimizerAdamW; {
	case !asked:
		r.Placement = Chosen(r.given.usualPlacement(m, string(r.Optimizer)))
	case len(m.traits.Placements) == 0:
		return nil, Invalid("placement", r.Placement, "%s has no correction that could be placed: use placement auto",
			m.Name)
	case r.Optimizer == optimizerSGD:
		return nil, Invalid("placement", r.Placement, "both are the same with optimizer sgd: use placement auto")
	case adaptive && r.Placement == placementCorrected && len(m.traits.Placements) == 1:
		return nil, Invalid("placement", r.Placement,
			"the correction of %s is made of preconditioned steps, so it cannot "+
				"correct the gradient: use placement local", m.Name)
	}
	if r.Objective == "samples" && r.Optimizer == optimizerAdamW && r.Placement != placementCorrected &&
		m.traits.Takes != algo.MeanGradient {
		return nil, Invalid("objective", r.Objective,
			"adamw divides a gradient by its own size, and with it the weight of "+
				"an agent's data, so that it has no effect: use objective agents, another optimizer, or placement "+
				"corrected if the method has it")
	}
	if asked && r.Momentum > 0 && r.Placement == placementCorrected && m.traits.Takes != algo.TrackedGradient {
		warnings = append(warnings, fmt.Sprintf("placement corrected lets the correction of %s pass through "+
			"momentum %v, and so act up to %.3g iterations late: differences between agents may grow; placement local "+
			"has no such delay", m.Name, r.Momentum, 1/(1-r.Momentum)))
	}
	if asked && r.Optimizer == optimizerAdamW && r.Placement == placementLocal && len(m.traits.Placements) > 0 {
		warnings = append(warnings, "adamw outside the correction (placement local) ends where the agents' "+
			"preconditioned gradients balance, which is no minimum if they hold different data")
	}
	return warnings, nil
}

// usualPlacement is what placement auto comes to: the first of the method's with an adaptive
// optimizer, and with a linear one local, except for gradient tracking. Language models have local
// also with an adaptive one, where the method allows it: with corrected their duals, times
// eta/alpha, outweigh their clipped gradients, and they do not learn.
func (c Config) usualPlacement(m Method, optimizer string) string {
	switch {
	case len(m.traits.Placements) == 0, optimizer == optimizerSGD:
		return "" // no effect
	case m.traits.Takes == algo.TrackedGradient:
		return m.traits.Placements[0]
	case optimizer == optimizerAdamW:
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
		if r.Optimizer == optimizerAdamW || r.Optimizer == optimizerDeMo {
			r.DecayForm = decayDecoupled
		}
	}
	switch {
	case r.LayerLR == "":
	case r.clipsApart():
		return Invalid("layer_lr", r.LayerLR, "also multiplies the L2 term, so that clip_norm cannot leave it out: "+
			"use weight_decay 0, or clip_norm 0")
	case r.unitSteps():
		return Invalid("layer_lr", r.LayerLR, "%s divides a gradient by its own size, and with it the factor: use "+
			"another optimizer, or leave layer_lr out", r.Optimizer)
	case r.DecayForm == decayDecoupled:
		return Invalid("layer_lr", r.LayerLR, "does not apply to decoupled weight decay: use decay_form coupled")
	}
	return nil
}

// meanSquareLimit is the G of gt-adam.
const meanSquareLimit = 1e6

// Descent is the optimizer of the resolved keys, for the algorithm of a method.
func (s *Setup) Descent() algo.Descent {
	c := s.Config
	d := algo.Descent{Corrected: c.Placement == placementCorrected}
	switch c.Optimizer {
	case optimizerHeavyBall:
		d.Opt = algo.HeavyBall{Mu: c.Momentum}
	case optimizerNesterov:
		d.Opt = algo.Nesterov{Mu: c.Momentum}
	case optimizerGTAdam:
		d.Opt = algo.GTAdam{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, Limit: meanSquareLimit}
	case optimizerAdamW:
		d.Opt = algo.AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps}
	}
	if c.DecayForm == decayDecoupled {
		d.Decay = &algo.Decay{Rate: c.WeightDecay, Except: s.Undecayed}
	}
	return d
}
