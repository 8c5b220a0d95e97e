package config

import (
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
	{Name: "gamma"},
	{Name: "beta"},
	{Name: "a_x"},
	{Name: "a_lambda"},
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
	{Name: "theta", Needs: []setting.Need{needsRun("weights constant",
		func(s *Setup, _ Config) bool { return !s.uses("weights") || s.Config.Weights == weightsConstant })}},
	{Name: "weights"},
	{Name: "order"},
	{Name: "mixing", Topic: "method", Default: "metropolis", Names: forms("mixing"), Forms: true,
		Help: "d2, exact-diffusion, edm, scaffnew, led, kgt, extra, choco, beer, ticopd, docom: fixed mixing matrix " +
			"W: metropolis, lazy-metropolis, laplacian(0.1), uniform, half-lazy(laplacian(0.2))"},
	{Name: "local_steps"},
	{Name: "share"},
	{Name: "outer_step"},
	{Name: "delta"},
	{Name: "rho"},
	{Name: "kappa"},
}

// AsyncKeys belong to fspda-async, and to variants of the other FSPDA algorithms.
type AsyncKeys[F Number] struct {
	Coef        string  `key:"coef"`
	CMax        F       `key:"c_max"`
	ComputeTime string  `key:"compute_time"`
	Slowness    string  `key:"slowness"`
	Contacts    float64 `key:"contacts"`
	Clock       string  `key:"clock"`
	GiveUp      float64 `key:"give_up"`
	DropAfter   float64 `key:"drop_after"`
	Dual        string  `key:"dual"`
	StormStart  string  `key:"storm_start"`
	StormLambda string  `key:"storm_lambda"`
}

var asyncKeys = []setting.Key{
	{Name: "coef"},
	{Name: "c_max", Needs: []setting.Need{needsRun("coef inverse or clock real",
		func(s *Setup, c Config) bool { return c.Coef == "inverse" || s.RealTime() })}},
	{Name: "compute_time", Topic: "method", Default: "exp", Names: simnet.Distributions, Forms: true,
		Needs: []setting.Need{needsRun(drawnTimes, (*Setup).drawsTimes)},
		Help:  "fspda-async: virtual time of a gradient, of mean 1: constant, exp, uniform, lognormal(0.5)"},
	{Name: "slowness", Topic: "method", Default: "equal", Names: simnet.Slownesses, Forms: true,
		Needs: []setting.Need{needsRun("gradient_time above 0, or "+drawnTimes,
			func(s *Setup, c Config) bool { return c.GradientTime > 0 || s.drawsTimes(c) })},
		Help: "fspda-async: factors of the agents' gradient times: equal, linear(6), straggler(6), random(6)"},
	{Name: "contacts"},
	{Name: "clock"},
	{Name: "give_up", Needs: []setting.Need{needsRealTime}},
	{Name: "drop_after", Topic: "method", Range: "[0, 1e9]", Want: "0, or 1 to 1e9 seconds", Check: neverOrLong,
		Resume: setting.Recorded,
		Needs: []setting.Need{needsRun("clock real, or membership elastic",
			func(s *Setup, _ Config) bool { return s.RealTime() || s.DropsSilent() })},
		Help: "clock real and membership elastic: seconds of silence after which an agent is dropped from the run; 0 " +
			"is never, with membership elastic 15"},
	{Name: "dual"},
	{Name: "storm_start"},
	{Name: "storm_lambda"},
}
