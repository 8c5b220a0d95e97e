package algo

import "fspda/train/setting"

// OptimizerKind declares a value of the key optimizer. No code compares the name of an optimizer:
// checks, defaults, help texts and the tables of the manual read this row.
type OptimizerKind struct {
	Name string
	// Rule is the direction u for a gradient g in symbols, for the manual. It may be empty.
	Rule string
	// New makes the optimizer of its settings, of which Values, Momentum, Alpha, Tensors and Undecayed
	// are set. If it is nil, the direction is the gradient, or the method whose optimizer it is makes it.
	New func(s Settings) Optimizer
	// Check refuses settings, and returns warnings. It may be nil.
	Check func(s Settings) (warnings []string, err error)

	// Keys lists the keys of the configuration that it reads and that not every optimizer reads, such
	// as beta1. Keys that an optimizer does not read are refused if they are set.
	Keys []string
	// Params are the settings that only this optimizer has.
	Params []setting.Key
	// Momentum is the value of the key momentum where that is 0; 0: it does not read the key.
	Momentum float64

	// General says that every method takes it that takes Any. Others are taken by the methods that name
	// them.
	General bool
	// Adaptive says that it divides gradients by their size, so that it is not linear in them.
	Adaptive bool
	// UnitSteps says that the size of a step follows from alpha and not from the gradient. Language
	// models then have the step size of AdamW. Adaptive optimizers have unit steps.
	UnitSteps bool
	// Decoupled says that weight decay is decoupled unless decay_form is set.
	Decoupled bool
	// OnlyDecoupled says that it takes the size of an L2 term out of the gradient.
	OnlyDecoupled bool
	// ExceptsItself says that it leaves out the weight decay of Settings.Undecayed.
	ExceptsItself bool
	// Nesterov says that the direction looks ahead by the momentum.
	Nesterov bool
	// Products counts the floating-point operations of its matrix products in a step, and the numbers
	// of working memory that they take; nil: it has none.
	Products func(s Settings) (operations float64, scratch int)
	// Constant says that it takes the place of a schedule, so that the step size is constant after a
	// warm-up.
	Constant bool
	// LanguageAlpha is the step size of language models; 0: it has unit steps.
	LanguageAlpha float64
}

// Optimizers lists the optimizers of this package. The first one is the default. A momentum without
// an optimizer chooses the first one that reads it.
func Optimizers() []OptimizerKind {
	return []OptimizerKind{plainKind, heavyBallKind, nesterovKind, adamWKind, muonKind, scheduleFreeSGDKind,
		scheduleFreeAdamWKind, gtAdamKind, demoKind}
}
