package config

import "fspda/train/setting"

// StepKeys shape the gradient step: schedule, momentum, regularisation.
type StepKeys[N ~string] struct {
	EtaSchedule  string  `key:"eta_schedule"`
	Optimizer    N       `key:"optimizer"`
	Momentum     float64 `key:"momentum"`
	Beta1        float64 `key:"beta1"`
	Beta2        float64 `key:"beta2"`
	Eps          float64 `key:"eps"`
	Placement    N       `key:"placement"`
	WeightDecay  float64 `key:"weight_decay"`
	DecayForm    N       `key:"decay_form"`
	DecayTensors string  `key:"decay"`
	Smoothing    float64 `key:"label_smoothing"`
}

var stepKeys = []setting.Key{
	{Name: "eta_schedule", Topic: "method", Default: "coupled", Choices: []string{"coupled", "constant"},
		Needs: []setting.Need{needsRun("an algorithm with a dual (fspda-sa, fspda-storm) and schedule cosine",
			func(s *Setup, c Config) bool { return s.Traits.Dual && c.Schedule != "constant" })},
		Help: "coupled (eta follows alpha) or constant"},
	{Name: "optimizer", Topic: "method", Default: auto, Names: orAuto(Optimizers), Since: "0.2.0",
		Inert: inertOptimizer,
		Help: "what makes directions of gradients: GENERAL, or that of OTHERS; auto is heavy-ball with a momentum, " +
			"else sgd"},
	{Name: "momentum", Topic: "method", Range: "[0, 1)", Want: "at least 0 and below 1",
		Help: "READERS: factor mu, for which 0 is 0.9; multiplies the effective step by 1/(1-mu)"},
	{Name: "beta1", Topic: "method", Default: 0.9, Range: "[0, 1)", Want: "at least 0 and below 1", Since: "0.2.0",
		Help: "READERS: decay rate of the mean of the gradients; schedule-free: share of the evaluated model in the " +
			"one that trains"},
	{Name: "beta2", Topic: "method", Default: 0.999, Range: "[0, 1)", Want: "at least 0 and below 1", Since: "0.2.0",
		Help: "READERS: decay rate of the mean of their squares"},
	{Name: "eps", Topic: "method", Default: 1e-8, Range: "(0, inf)", Want: "a number above 0", Since: "0.2.0",
		Help: "READERS: number added to the root of the mean square; with gt-adam inside the root"},
	{Name: "placement", Topic: "method", Default: auto, Choices: []string{auto, placementLocal, placementCorrected},
		Since: "0.2.0", Inert: inertPlacement,
		Help: "fspda-sa, fspda-sa-sketch, fspda-sa-ef, scaffnew, led, kgt, d2, exact-diffusion, dsgt, diging, next, " +
			"ticopd: where the optimizer stands: local (on the gradient alone), corrected (on the gradient with the " +
			"method's correction), or auto (corrected for dsgt, diging and next, and with adamw, except for kgt and " +
			"for language models)"},
	{Name: "weight_decay", Topic: "method", Default: 1e-4, Range: "[0, inf)", Want: "0 or more",
		Help: "L2 coefficient wd of the term wd/2·|x|², or decoupled weight decay"},
	{Name: "decay_form", Topic: "method", Default: auto, Choices: []string{auto, decayCoupled, decayDecoupled},
		Since: "0.2.0", Inert: inertDecay,
		Help: "coupled (the L2 term is part of objective and gradient), decoupled (wd·x is added to the direction " +
			"of the optimizer), or auto (decoupled with DECOUPLED)"},
	{Name: "decay", Topic: "method", Default: "no-norm",
		Choices: []string{"all", "weights", "no-norm", "by-name(PATTERN,...)"}, Forms: true, Check: checkDecay,
		Needs: []setting.Need{needs("weight_decay above 0",
			func(c Config) bool { return c.WeightDecay != 0 })},
		Help: "what weight_decay applies to: no-norm, all but the parameters of norms; all; weights, which leaves " +
			"out biases too; or by-name(conv*,fc), the tensors that match; by-name(*,!bn*,!*.*.bn*) is the released " +
			"program's rule"},
	{Name: "label_smoothing", Topic: "method", Range: "[0, 1)", Want: "at least 0 and below 1",
		Help: "share of the target that is spread over all classes, such as 0.1"},
}
