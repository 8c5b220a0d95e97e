package config

import (
	"cmp"
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

// Values of Method.Optimizers.
var (
	anyOptimizer  = []string{optimizerSGD, optimizerHeavyBall, optimizerNesterov, optimizerAdamW}
	heavyBallOnly = []string{optimizerHeavyBall}
)

// takes reports whether a method takes an optimizer.
func (m Method) takes(optimizer string) bool {
	return slices.Contains(m.Optimizers, optimizer) || m.Optimizers == nil && optimizer == optimizerSGD
}

// Where the correction of a method may enter with an adaptive optimizer; the first is the default.
var (
	anyPlacement = []string{placementCorrected, placementLocal}
	localOnly    = []string{placementLocal}
)

// adaptive reports whether the optimizer divides gradients by their size.
func (c Config) adaptive() bool {
	return c.Optimizer == optimizerAdamW || c.Optimizer == optimizerGTAdam
}

// unitSteps reports whether the size of a step follows from alpha, and not from the gradient.
func (c Config) unitSteps() bool { return c.adaptive() || c.Optimizer == optimizerDeMo }

// Decoupled reports whether weight decay is applied by the optimizer, so that neither the objective
// nor its gradients include it.
func (c Config) Decoupled() bool {
	return c.DecayForm == decayDecoupled ||
		c.DecayForm == "auto" && (c.Optimizer == optimizerAdamW || c.Optimizer == optimizerDeMo)
}

// L2 is the coefficient of the L2 term of the objective: weight_decay unless that is decoupled.
func (c Config) L2() float64 {
	if c.Decoupled() {
		return 0
	}
	return c.WeightDecay
}

// ClipsApart reports whether an agent clips a gradient from which it has to take the L2 term out.
func (s *Setup) ClipsApart() bool { return s.Config.ClipNorm > 0 && s.Config.L2() > 0 }

// settleOptimizer resolves auto in the keys of the optimizer, and refuses those without effect.
func (s *Setup) settleOptimizer() error {
	c, m := &s.Config, s.method
	others := func() string {
		return strings.Join(withFeature(func(m Method) bool { return m.takes(optimizerAdamW) }), ", ")
	}
	switch {
	case c.Momentum != 0 && !m.takes(optimizerHeavyBall):
		return Invalid("momentum", c.Momentum, "%s has no heavy ball: set momentum 0, or choose an algorithm that "+
			"has one (%s)", m.Name, others())
	case c.Optimizer != "auto" && !m.takes(c.Optimizer):
		return Invalid("optimizer", c.Optimizer, "%s is stated for %s: use optimizer auto, or an algorithm that takes "+
			"any (%s)", m.Name, cmp.Or(strings.Join(m.Optimizers, " or "), optimizerSGD), others())
	case c.DecayForm == decayDecoupled && !m.takes(optimizerAdamW) && !m.takes(optimizerDeMo):
		return Invalid("decay_form", c.DecayForm, "%s takes gradients as they are: use decay_form coupled, or an "+
			"algorithm that takes any optimizer (%s)", m.Name, others())
	}
	if c.Optimizer == "auto" {
		c.Optimizer = optimizerSGD
		if !m.takes(optimizerSGD) {
			c.Optimizer = m.Optimizers[0]
		} else if c.Momentum > 0 {
			c.Optimizer = optimizerHeavyBall
		}
	}
	switch c.Optimizer {
	case optimizerSGD, optimizerAdamW, optimizerGTAdam, optimizerDeMo:
		if c.Momentum != 0 {
			return Invalid("momentum", c.Momentum, "%s has no such factor: use optimizer heavy-ball or nesterov, or "+
				"beta1 of adamw", c.Optimizer)
		}
	case optimizerHeavyBall, optimizerNesterov:
		c.Momentum = cmp.Or(c.Momentum, defaultMomentum)
	}
	if d := Default(); !c.adaptive() && (c.Beta1 != d.Beta1 || c.Beta2 != d.Beta2 || c.Eps != d.Eps) {
		return Invalid("optimizer", c.Optimizer, "does not use beta1, beta2 and eps: leave them out, or use adamw")
	}
	if c.Optimizer == optimizerGTAdam && c.Beta2 == 0 {
		return Invalid("beta2", c.Beta2, "gt-adam keeps eps in the mean of squares, whose decay rate divides it: "+
			"expected above 0 and below 1")
	}
	if err := s.settlePlacement(); err != nil {
		return err
	}
	return s.settleDecay()
}

// settlePlacement resolves where the correction of the method enters.
func (s *Setup) settlePlacement() error {
	c, m := &s.Config, s.method
	asked := c.Placement != "auto"
	switch adaptive := c.Optimizer == optimizerAdamW; {
	case c.Placement == "auto":
		c.Placement = c.usualPlacement(m)
	case len(m.Placements) == 0:
		return Invalid("placement", c.Placement, "%s has no correction that could be placed: use placement auto",
			m.Name)
	case c.Optimizer == optimizerSGD:
		return Invalid("placement", c.Placement, "both are the same with optimizer sgd: use placement auto")
	case adaptive && c.Placement == placementCorrected && len(m.Placements) == 1:
		return Invalid("placement", c.Placement, "the correction of %s is made of preconditioned steps, so it cannot "+
			"correct the gradient: use placement local", m.Name)
	}
	if c.Objective == "samples" && c.Optimizer == optimizerAdamW && c.Placement != placementCorrected {
		return Invalid("objective", c.Objective, "adamw divides a gradient by its own size, and with it the weight of "+
			"an agent's data, so that it has no effect: use objective agents, another optimizer, or placement "+
			"corrected if the method has it")
	}
	if asked && c.Momentum > 0 && c.Placement == placementCorrected && !m.Tracks {
		s.Warnings = append(s.Warnings, fmt.Sprintf("placement corrected lets the correction of %s pass through "+
			"momentum %v, and so act up to %.3g iterations late: differences between agents may grow; placement local "+
			"has no such delay", m.Name, c.Momentum, 1/(1-c.Momentum)))
	}
	if asked && c.Optimizer == optimizerAdamW && c.Placement == placementLocal && len(m.Placements) > 0 {
		s.Warnings = append(s.Warnings, "adamw outside the correction (placement local) ends where the agents' "+
			"preconditioned gradients balance, which is no minimum if they hold different data")
	}
	return nil
}

// usualPlacement is what placement auto comes to: the first of the method's with an adaptive
// optimizer, and with a linear one local, except for gradient tracking. Language models have local
// also with an adaptive one, where the method allows it: with corrected their duals, times
// eta/alpha, outweigh their clipped gradients, and they do not learn.
func (c Config) usualPlacement(m Method) string {
	switch {
	case len(m.Placements) == 0, c.Optimizer == optimizerSGD:
		return "auto" // no effect
	case m.Tracks:
		return m.Placements[0]
	case c.Optimizer == optimizerAdamW:
		if _, language := c.language(); language && slices.Contains(m.Placements, placementLocal) {
			return placementLocal
		}
		return m.Placements[0]
	}
	return placementLocal
}

// settleDecay resolves decay_form and refuses factors of step sizes that the optimizer would undo.
func (s *Setup) settleDecay() error {
	c := &s.Config
	if c.DecayForm != "auto" && c.WeightDecay == 0 {
		return Invalid("decay_form", c.DecayForm, "weight_decay is 0, so that it has no effect: leave one of them out")
	}
	decoupled := c.Decoupled()
	switch {
	case c.WeightDecay == 0:
	case decoupled:
		c.DecayForm = decayDecoupled
	default:
		c.DecayForm = decayCoupled
	}
	switch {
	case c.LayerLR == "":
	case s.ClipsApart():
		return Invalid("layer_lr", c.LayerLR, "also multiplies the L2 term, so that clip_norm cannot leave it out: "+
			"use weight_decay 0, or clip_norm 0")
	case c.unitSteps():
		return Invalid("layer_lr", c.LayerLR, "%s divides a gradient by its own size, and with it the factor: use "+
			"another optimizer, or leave layer_lr out", c.Optimizer)
	case decoupled && c.WeightDecay > 0:
		return Invalid("layer_lr", c.LayerLR, "does not apply to decoupled weight decay: use decay_form coupled")
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
	if c.Decoupled() && c.WeightDecay > 0 {
		d.Decay = &algo.Decay{Rate: c.WeightDecay, Except: s.Undecayed}
	}
	return d
}
