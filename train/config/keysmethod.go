package config

import (
	"fspda/train/algo"
	"fspda/train/setting"
	"fspda/train/simnet"
)

// LengthKeys choose the algorithm, the length of the run and the step size.
type LengthKeys struct {
	Algo       string  `key:"algo"`
	Params     Params  `key:"params"`
	Iterations int     `key:"iterations"`
	Epochs     float64 `key:"epochs"`
	Alpha      float64 `key:"alpha"`
}

var lengthKeys = []setting.Key{
	{Name: "algo", Topic: "method", Default: "fspda-sa", Names: Algorithms,
		Help: "ALGORITHMS; help describes them"},
	{Name: "params", Topic: "method", Default: Params(nil), Since: "0.2.0",
		Help: "settings of the algorithm's own, NAME=VALUE, as in beta=0.9; in a file params: {beta: 0.9}"},
	{Name: "iterations", Topic: "run", Default: 3000, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Needs: []setting.Need{needsRun("epochs 0",
			func(s *Setup, c Config) bool { return c.Epochs == 0 || c.Iterations == s.Config.Iterations })},
		Help: "number of iterations T"},
	{Name: "epochs", Topic: "run", Range: "[0, inf)", Want: "0, or a number of epochs above it",
		Help: "passes of a mean agent over its own data, in place of iterations; 0: iterations is the length of the " +
			"run"},
	{Name: "alpha", Topic: "method", Default: 0.3, Range: "(0, inf)", Want: "a step size above 0",
		Needs: []setting.Need{needsRun("rho auto, or an algorithm that does not take its step from rho",
			func(s *Setup, c Config) bool { return !s.uses("rho") || c.Rho.Auto })},
		Help: "primal step size (learning rate); the largest one of a schedule"},
}

// DualKeys are the gains of the FSPDA algorithms.
type DualKeys[F Number] struct {
	Eta     F       `key:"eta"`
	Gamma   float64 `key:"gamma"`
	Beta    float64 `key:"beta"`
	AX      float64 `key:"a_x"`
	ALambda float64 `key:"a_lambda"`
}

var dualKeys = []setting.Key{
	{Name: "eta", Topic: "method", Default: chosen, Range: "[0, inf)", Want: "0 or more, or auto",
		Help: "fspda: dual-to-primal gain at the largest alpha; auto derives it from the graph's spectrum"},
	{Name: "gamma", Topic: "method", Default: 0.5, Want: "a finite number",
		Help: "fspda, gasloc: gossip gain; 0.5 averages a pair"},
	{Name: "beta", Topic: "method", Default: 1, Range: "[0, inf)", Want: "0 or more",
		Help: "fspda: dual step size"},
	{Name: "a_x", Topic: "method", Default: 0.1, Range: "(0, 1]",
		Want: "above 0 and at most 1: the weight of the newest sample",
		Help: "fspda-storm, fspda-async-storm: weight of the newest sample in the primal momentum; 1 is fspda-sa"},
	{Name: "a_lambda", Topic: "method", Default: 0.1, Range: "(0, 1]",
		Want: "above 0 and at most 1: the weight of the newest sample",
		Help: "fspda-storm, fspda-async-storm: weight of the newest sample in the dual momentum"},
}

// AveragingKeys belong to the algorithms that average models.
type AveragingKeys[F Number, N ~string] struct {
	Theta      F       `key:"theta"`
	Weights    N       `key:"weights"`
	Order      string  `key:"order"`
	Mixing     string  `key:"mixing"`
	LocalSteps int     `key:"local_steps"`
	Share      float64 `key:"share"`
	OuterStep  float64 `key:"outer_step"`
	Delta      float64 `key:"delta"`
	Rho        F       `key:"rho"`
	Kappa      float64 `key:"kappa"`
}

var averagingKeys = []setting.Key{
	{Name: "theta", Topic: "method", Default: chosen, Want: "a finite number, or auto",
		Needs: []setting.Need{needsRun("weights constant",
			func(s *Setup, _ Config) bool { return !s.uses("weights") || s.Config.Weights == weightsConstant })},
		Help: "dsgd, choco, beer: consensus step size; auto is 0.5 for dsgd, or 1/(1 + the largest degree) where " +
			"all edges at once would not bear that, and half the stable limit for choco and beer"},
	{Name: "weights", Topic: "method", Default: auto,
		Choices: []string{auto, weightsConstant, weightsMetropolis, weightsProcess},
		Help: "dsgd: constant (theta), metropolis (of the active graph), process (those of the edge process, such " +
			"as base(2)), or auto (process where it has weights, else constant)"},
	{Name: "order", Topic: "method", Default: "cta", Choices: []string{"cta", "atc"},
		Help: "dsgd: cta (combine then adapt) or atc (adapt then combine)"},
	{Name: "mixing", Topic: "method", Default: "metropolis", Names: forms("mixing"), Forms: true,
		Help: "d2, exact-diffusion, edm, scaffnew, led, kgt, extra, choco, beer: fixed mixing matrix W: metropolis, " +
			"lazy-metropolis, laplacian(0.1), uniform, half-lazy(laplacian(0.2))"},
	{Name: "local_steps", Topic: "method", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Help: "scaffnew, led, kgt: local steps between two averagings; 0 follows edges, or is 10 with edges auto; " +
			"local-sgd, diloco, noloco, gasloc: steps of a round; 0 is 10; qg-dsgdm: the same; 0 is 1; sparta, " +
			"sparta-diloco, streaming-diloco: iterations from one average to the next; 0 is 1; blocking swarm: " +
			"steps of a pair; 0 is 1"},
	{Name: "share", Topic: "method", Default: 1, Range: "(0, 1]",
		Want: "above 0 and at most 1: the share c of the averaging step",
		Help: "scaffnew: share c of the averaging step, at most 1"},
	{Name: "outer_step", Topic: "method", Default: 1, Range: "(0, inf)",
		Want: "a step size above 0; 1 goes where the local steps went",
		Help: "kgt: outer step eta_s; 1 keeps the result of the local steps"},
	{Name: "delta", Topic: "method", Default: 0.5, Range: "(0, 0.5]",
		Want: "above 0 and at most 0.5: W~ lies between W and (I+W)/2",
		Help: "extra: W~ = W + delta (I-W), at most 0.5"},
	{Name: "rho", Topic: "method", Default: chosen, Range: "(0, inf)", Want: "a penalty above 0, or auto",
		Help: "prox-gpda: penalty; its step is 1/(2 rho degree); auto makes alpha the largest of these steps"},
	{Name: "kappa", Topic: "method", Range: "[0, 1)", Want: "at least 0 and below 1",
		Help: "next: the step size decays as b(t+1) = b(t) (1 - kappa b(t)); 0 keeps it constant"},
}

// AsyncKeys belong to fspda-async.
type AsyncKeys[F Number] struct {
	Coef        string  `key:"coef"`
	CMax        F       `key:"c_max"`
	ComputeTime string  `key:"compute_time"`
	Slowness    string  `key:"slowness"`
	Contacts    float64 `key:"contacts"`
	Clock       string  `key:"clock"`
	GiveUp      float64 `key:"give_up"`
	DropAfter   float64 `key:"drop_after"`
}

var asyncKeys = []setting.Key{
	{Name: "coef", Topic: "method", Default: string(algo.Inverse),
		Choices: []string{string(algo.Inverse), string(algo.One), string(algo.Printed)},
		Help: "fspda-async: gradient coefficient: inverse (1/frequency), one, or printed (as in the paper's " +
			"appendix)"},
	{Name: "c_max", Topic: "method", Default: chosen, Range: "(0, inf)", Want: "a coefficient above 0, or auto",
		Needs: []setting.Need{needsRun("coef inverse or clock real",
			func(s *Setup, c Config) bool { return c.Coef == "inverse" || s.RealTime() })},
		Help: "fspda-async: the largest gradient coefficient; auto is 10, or twice the factor between the slowest " +
			"and the fastest agent if that is more"},
	{Name: "compute_time", Topic: "method", Default: "exp", Names: simnet.Distributions, Forms: true,
		Needs: []setting.Need{needsRun(drawnTimes, (*Setup).drawsTimes)},
		Help:  "fspda-async: virtual time of a gradient, of mean 1: constant, exp, uniform, lognormal(0.5)"},
	{Name: "slowness", Topic: "method", Default: "equal", Names: simnet.Slownesses, Forms: true,
		Needs: []setting.Need{needsRun("gradient_time above 0, or "+drawnTimes,
			func(s *Setup, c Config) bool { return c.GradientTime > 0 || s.drawsTimes(c) })},
		Help: "fspda-async: factors of the agents' gradient times: equal, linear(6), straggler(6), random(6)"},
	{Name: "contacts", Topic: "method", Default: 1, Range: "[0, 1e4]", Want: "0 to 1e4",
		Help: "fspda-async: mean number of exchanges to which an agent is called in a unit of virtual time"},
	{Name: "clock", Topic: "method", Default: ClockVirtual, Choices: []string{ClockVirtual, ClockReal}, Since: "0.1.0",
		Help: "fspda-async: virtual (the same run every time) or real (between processes: agents compute and " +
			"exchange at their own pace, without waiting for each other)"},
	{Name: "give_up", Topic: "method", Default: 5, Range: "(0, 1e6]", Want: "above 0 and at most 1e6 seconds",
		Needs: []setting.Need{needsRealTime}, Resume: setting.Recorded,
		Help: "clock real: seconds after which an unfinished exchange no longer keeps an agent from other exchanges"},
	{Name: "drop_after", Topic: "method", Range: "[0, 1e9]", Want: "0, for never, or 1 to 1e9 seconds",
		Check:  zeroOr(1),
		Resume: setting.Recorded,
		Help:   "clock real: seconds of silence after which an agent is dropped from the run; 0 is never"},
}

// VariantKeys choose variants of the FSPDA algorithms.
type VariantKeys struct {
	Dual        string `key:"dual"`
	StormStart  string `key:"storm_start"`
	StormLambda string `key:"storm_lambda"`
}

var variantKeys = []setting.Key{
	{Name: "dual", Topic: "method", Default: "same-time", Choices: []string{"same-time", "stale-neighbour"},
		Help: "fspda-sa: same-time, or stale-neighbour, the released program's dual step"},
	{Name: "storm_start", Topic: "method", Default: "gradient", Choices: []string{"gradient", "zero"},
		Help: "fspda-storm: initial momenta: gradient (the first gradient) or zero"},
	{Name: "storm_lambda", Topic: "method", Default: "exact", Choices: []string{"exact", "lagged"},
		Help: "fspda-storm: exact, or lagged, the released program's average of lambda"},
}
