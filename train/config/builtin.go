package config

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"fspda/internal/rng"
	"fspda/train/algo"
)

// builtin lists the algorithms of this module.
var builtin = prepareAll([]Method{
	{Name: "fspda-sa", Keys: []string{"gamma", "beta", "dual"}, Check: fspdaStable,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.SA{Gamma: s.Param("gamma"), Beta: s.Param("beta"), Stale: s.Choice("dual") == "stale-neighbour",
				Descent: s.Descent}
		}},
	{Name: "fspda-storm", Keys: []string{"gamma", "beta", "a_x", "a_lambda", "storm_start", "storm_lambda"},
		Check: fspdaStable, New: func(s algo.Settings) algo.Algorithm {
			a := storm(s)
			a.ZeroStart, a.Lagged = s.Choice("storm_start") == "zero", s.Choice("storm_lambda") == "lagged"
			return a
		}},
	{Name: "dsgd", Keys: []string{"theta", "weights", "order"}, Check: dsgdStable,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.DSGD{Theta: s.Param("theta"), Metropolis: s.Choice("weights") != weightsConstant,
				ATC: s.Choice("order") == "atc", Descent: s.Descent}
		}},
	{Name: "dmsgd", New: func(s algo.Settings) algo.Algorithm { return algo.DmSGD{Mu: s.Momentum} }},
	{Name: "qg-dsgdm", Keys: []string{"local_steps"}, Check: qgStable, New: func(s algo.Settings) algo.Algorithm {
		return algo.QG{Mu: s.Momentum, Nesterov: s.Nesterov, H: s.Whole("local_steps")}
	}},
	{Name: "decentlam", Check: decentlamStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.DecentLaM{Mu: s.Momentum} }},
	{Name: "dsgt", Params: []Param{trackingForm(algo.SemiATC, algo.CombineThenAdapt, algo.AdaptThenCombine)},
		New: func(s algo.Settings) algo.Algorithm { return algo.NewTracking(s.Choice("form"), s.Descent) }},
	{Name: "gt-dsgdm", Params: []Param{trackingForm(algo.SemiATC, algo.CombineThenAdapt, algo.AdaptThenCombine)},
		New: func(s algo.Settings) algo.Algorithm { return algo.NewGTDSGDm(s.Choice("form"), s.Descent) }},
	{Name: "momentum-tracking",
		Params: []Param{trackingForm(algo.CombineThenAdapt, algo.SemiATC, algo.AdaptThenCombine)},
		New: func(s algo.Settings) algo.Algorithm {
			return algo.MomentumTracking{Tracking: algo.NewTracking(s.Choice("form"), s.Descent)}
		}},
	{Name: "gt-adam", Params: []Param{trackingForm(algo.CombineThenAdapt, algo.SemiATC, algo.AdaptThenCombine)},
		New: func(s algo.Settings) algo.Algorithm { return algo.NewAdamTracking(s.Choice("form"), s.Descent) }},
	{Name: "sgp", Check: sgpStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.SGP{Regular: s.Regular, Descent: s.Descent} }},
	{Name: "relaysgd", Check: treeOnly,
		Params: []Param{{Name: "normalize", Choices: []string{"agents", "counts"},
			Help: "what the sum of models is divided by: agents, where x^0 stands for models that have not arrived " +
				"yet, or counts, the number of those that have"}},
		New: func(s algo.Settings) algo.Algorithm {
			return algo.Relay{N: s.Agents, ByCount: s.Choice("normalize") == "counts", Descent: s.Descent}
		}},
	{Name: "powergossip", Params: []Param{{Name: "theta", Default: 1, Range: "(0, 1]",
		Help: "share of the way to the neighbours' mean, along the directions that were compared"}},
		New: func(s algo.Settings) algo.Algorithm { return sketches(s, s.Param("theta")) }},
	{Name: "fspda-sa-sketch", Keys: []string{"gamma", "beta"}, Check: fspdaStable,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.SketchedSA{Gamma: s.Param("gamma"), Beta: s.Param("beta"), PowerGossip: sketches(s, 0)}
		}},
	{Name: "edm", Check: diffusionStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.EDM{D2: algo.NewD2(s.Descent)} }},
	{Name: "exact-diffusion", Check: mixingStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.ExactDiffusion{D2: algo.NewD2(s.Descent)} }},
	{Name: "d2", Check: diffusionStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.NewD2(s.Descent) }},
	{Name: "scaffnew", Keys: []string{"local_steps", "share"}, Check: scaffnewStable,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.Scaffnew{P: s.Rate, C: s.Param("share"), Descent: s.Descent}
		}},
	{Name: "led", Keys: []string{"local_steps"}, Check: diffusionStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.LED{Tau: s.RoundSteps, Descent: s.Descent} }},
	{Name: "kgt", Keys: []string{"local_steps", "outer_step"}, Check: mixingStable,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.KGT{K: s.RoundSteps, EtaS: s.Param("outer_step"), Descent: s.Descent}
		}},
	{Name: "diging", New: func(s algo.Settings) algo.Algorithm { return algo.DIGing{Descent: s.Descent} }},
	{Name: "extra", Keys: []string{"delta"}, Check: mixingStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.EXTRA{Delta: s.Param("delta")} }},
	{Name: "prox-gpda", Keys: []string{"rho"}, Check: proxStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.ProxGPDA{Rho: s.Param("rho")} }},
	{Name: "next", Keys: []string{"kappa"}, New: func(s algo.Settings) algo.Algorithm {
		return algo.NEXT{Kappa: s.Param("kappa"), Descent: s.Descent}
	}},
	{Name: "beer", Keys: []string{"theta", "compress", "norms"}, Check: chocoStable,
		New: func(s algo.Settings) algo.Algorithm { return algo.BEER{Theta: s.Param("theta")} }},
	{Name: "choco", Keys: []string{"theta", "compress", "norms", "reference_bits", "early"}, Check: chocoStable,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.CHOCO{Theta: s.Param("theta"), Early: s.Flag("early"), Descent: s.Descent}
		}},
	{Name: "swarm", Keys: []string{"compress", "swarm", "initiator", "local_steps"}, Check: swarmFair,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.Swarm{Blocking: s.Choice("swarm") == "blocking", Steps: max(1, s.Whole("local_steps")),
				Descent: s.Descent}
		}},
	{Name: "fspda-async", Keys: []string{"gamma", "beta", "coef", "c_max", "contacts", "clock", "give_up", "drop_after"},
		Check: asyncStable, New: func(s algo.Settings) algo.Algorithm {
			return algo.Async{SA: algo.SA{Gamma: s.Param("gamma"), Beta: s.Param("beta")}, Protocol: protocol(s)}
		}},
	{Name: "fspda-async-storm", Keys: []string{"gamma", "beta", "a_x", "a_lambda", "coef", "c_max", "contacts"},
		Check: asyncStable, New: func(s algo.Settings) algo.Algorithm {
			return algo.AsyncSTORM{STORM: storm(s), Protocol: protocol(s)}
		}},
	{Name: "local-sgd", Keys: []string{"local_steps"}, New: func(s algo.Settings) algo.Algorithm {
		return algo.LocalSGD{DiLoCo: algo.DiLoCo{H: s.Whole("local_steps"), Rate: 1, Descent: s.Descent}}
	}},
	{Name: "diloco", Keys: []string{"local_steps"}, Params: []Param{outerLR, {Name: outerMomentum, Default: 0.9,
		Range: "[0, 1)", Help: "Nesterov momentum of the outer steps"}},
		New: func(s algo.Settings) algo.Algorithm { return diloco(s, s.Whole("local_steps")) }},
	{Name: "noloco", Keys: []string{"local_steps"}, Params: []Param{outerLR, {Name: outerMomentum, Default: 0.5,
		Range: "[0, 1)", Help: "heavy ball of the outer steps"}, {Name: "pull", Range: "[0, 2)",
		Help: "gain towards the pair's mean of the slow models; 0 is outer_lr"}}, Check: nolocoStable,
		New: func(s algo.Settings) algo.Algorithm {
			return algo.NoLoCo{H: s.Whole("local_steps"), Rate: s.Param(outerLR.Name), Mu: s.Param(outerMomentum),
				Pull: pull(s), Descent: s.Descent}
		}},
	{Name: "gasloc", Keys: []string{"local_steps", "gamma"}, Params: []Param{outerLR, {Name: outerMomentum,
		Default: 0.5, Range: "[0, 1)", Help: "momentum of the outer steps, which contains the averaging"}},
		Check: gaslocStable, New: func(s algo.Settings) algo.Algorithm {
			return algo.GASLoC{H: s.Whole("local_steps"), Rate: s.Param(outerLR.Name), Mu: s.Param(outerMomentum),
				Gamma: s.Param("gamma"), Descent: s.Descent}
		}},
	{Name: "sparta", Keys: []string{"local_steps"}, New: func(s algo.Settings) algo.Algorithm {
		return algo.SPARTA{Every: s.Whole("local_steps"), Descent: s.Descent}
	}},
	{Name: "sparta-diloco", Keys: []string{"local_steps"}, Check: wholeOuterSteps,
		Params: []Param{{Name: "outer_steps", Default: 10, Range: "[2, inf)", Whole: true,
			Help: "iterations from one outer step to the next: a multiple of local_steps"}, outerLR,
			{Name: outerMomentum, Default: 0.9, Range: "[0, 1)", Help: "Nesterov momentum of the outer steps"}},
		New: func(s algo.Settings) algo.Algorithm {
			return algo.SPARTADiLoCo{Every: s.Whole("local_steps"), DiLoCo: diloco(s, s.Whole("outer_steps"))}
		}},
	{Name: "streaming-diloco", Keys: []string{"local_steps"}, Check: inParts,
		Params: []Param{outerLR, {Name: outerMomentum, Default: 0.9, Range: "[0, 1)",
			Help: "Nesterov momentum of the outer steps"}},
		New: func(s algo.Settings) algo.Algorithm {
			return algo.StreamingDiLoCo{Every: s.Whole("local_steps"), Rate: s.Param(outerLR.Name),
				Mu: s.Param(outerMomentum), Descent: s.Descent}
		}},
	{Name: "demo", Keys: []string{"compress"}, Params: []Param{{Name: "keep", Default: 0.999, Range: "[0, 1)",
		Help: "decay rate of the momentum"}}, New: func(s algo.Settings) algo.Algorithm {
		return algo.DeMo{Keep: s.Param("keep"), Decay: s.Descent.Decay}
	}},
	{Name: "sgd", New: func(s algo.Settings) algo.Algorithm { return algo.SGD{Descent: s.Descent} }},
})

// storm is FSPDA-STORM of the keys that its asynchronous form has too.
func storm(s algo.Settings) algo.STORM {
	return algo.STORM{Gamma: s.Param("gamma"), Beta: s.Param("beta"), AX: s.Param("a_x"), ALambda: s.Param("a_lambda")}
}

// protocol is the protocol of an asynchronous algorithm.
func protocol(s algo.Settings) algo.Protocol {
	return algo.Protocol{Coef: algo.Coefficient(s.Choice("coef")), CMax: s.Param("c_max")}
}

// diloco is DiLoCo with rounds of h steps.
func diloco(s algo.Settings, h int) algo.DiLoCo {
	return algo.DiLoCo{H: h, Rate: s.Param(outerLR.Name), Mu: s.Param(outerMomentum), Descent: s.Descent}
}

const outerMomentum = "outer_momentum"

var outerLR = Param{Name: "outer_lr", Default: 0.7, Range: "(0, 2]", Help: "step size of the outer steps"}

// pull is the gain of noloco towards the pair's mean.
func pull(s algo.Settings) float64 { return cmp.Or(s.Param("pull"), s.Param(outerLR.Name)) }

// nolocoStable refuses gains at which the slow models of pairs drift apart: those that equation 74
// of its paper excludes, and those at which a pair passes its mean before its agents meet again.
func nolocoStable(s *Setup) ([]string, error) {
	mu, pull := s.Param(outerMomentum), pull(s.settings())
	if most := math.Sqrt(2 + mu*mu); !(pull > mu && pull < most) {
		return nil, Invalid("params.pull", pull, "must be above outer_momentum %v and below %.4g, or the slow "+
			"models of the agents drift apart", mu, most)
	}
	return nil, s.momentumStable("params."+outerMomentum, gossipMomentum{sumOfPulls{}, mu, s.Config.LocalSteps,
		constantWeight(pull / 2)})
}

// sketches is powergossip on the tensors of the model.
func sketches(s algo.Settings, theta float64) algo.PowerGossip {
	return algo.PowerGossip{Theta: theta, Tensors: s.Tensors, Draw: s.Draw, Descent: s.Descent}
}

// drawDirection returns the draws of powergossip: normal numbers, equal at both ends of an edge.
func drawDirection(seed uint64) func(dst []float32, t, i, j, block int) {
	return func(dst []float32, t, i, j, block int) {
		s := rng.New(seed, "mask", uint64(t), uint64(i), uint64(j), uint64(block))
		for k := range dst {
			dst[k] = float32(s.Norm())
		}
	}
}

// trackingForm is the setting of gradient tracking that orders combining and adapting.
func trackingForm(forms ...string) Param {
	return Param{Name: "form", Choices: forms, Help: "order of combining and adapting: cta, W x - alpha y; semi-atc, " +
		"W(x - alpha y), of models only; atc, of both, with two exchanges in an iteration"}
}

// sgpStable refuses short values for the weights of push-sum: their sum would drift. It warns where
// weights may become small.
func sgpStable(s *Setup) ([]string, error) {
	if s.Directed().Regular() {
		return nil, nil
	}
	if s.WireFormat().Bits() < 32 {
		return nil, Invalid("wire", s.Config.Wire, "the weights that sgp sends with edges %s need 32 bits: use wire "+
			"fp32, or one-peer-exp or static-exp, which send none", s.Config.Edges)
	}
	return []string{
		fmt.Sprintf("edges %s let the weights of agents that give more than they get become small, and the "+
			"step of such an agent is alpha divided by its weight: if the run diverges, lower alpha, or use "+
			"one-peer-exp",
			s.Config.Edges),
	}, nil
}

// wholeOuterSteps refuses outer steps between two averages, or at each of them.
func wholeOuterSteps(s *Setup) ([]string, error) {
	if h, every := int(s.Param("outer_steps")), s.Config.LocalSteps; h%every != 0 || h == every {
		return nil, Invalid("params.outer_steps", strconv.Itoa(h),
			"outer steps are taken where models are averaged, and "+
				"not each time: expected a multiple of local_steps, which is %d, such as %d; diloco takes no averages "+
				"in between", every, 10*every)
	}
	return nil, nil
}

// inParts refuses masks of other coordinates than those of a part, whose rounds are equally long. It
// warns a single agent.
func inParts(s *Setup) ([]string, error) {
	if mask := s.Config.Mask; mask != "parts" && mask != "all" {
		return nil, Invalid("mask", mask, "streaming-diloco sends one part of the model after the other: use mask "+
			"auto, and density 1/P for P parts")
	}
	if s.Graph.N == 1 {
		return []string{"one agent: outer steps are made of what agents exchange, so that none is taken"}, nil
	}
	return nil, nil
}

// treeOnly refuses graphs with cycles, in which a model would be counted several times.
func treeOnly(s *Setup) ([]string, error) {
	if n := s.Graph.N; len(s.Graph.Edges) != n-1 {
		return nil, Invalid("graph", s.Config.Graph, "has %d edges among %d agents, and so cycles; %s sums models "+
			"along the branches of a tree, which has %d: use path, star, binary-tree, or file(PATH) with a tree",
			len(s.Graph.Edges), n, s.Config.Algo, n-1)
	}
	if s.WireFormat().Bits() < 32 {
		return nil, Invalid("wire", s.Config.Wire, "the counts that %s sends need 32 bits: use wire fp32",
			s.Config.Algo)
	}
	return nil, nil
}

func fspdaStable(s *Setup) ([]string, error) {
	c := s.Config
	return s.gossipStable("gamma", c.Gamma, c.Eta*c.Beta)
}

// asyncStable is fspdaStable, and warns of agents whose coefficients c_max limits.
func asyncStable(s *Setup) ([]string, error) {
	warnings, err := fspdaStable(s)
	return append(warnings, s.limitedCoefficients()...), err
}

func dsgdStable(s *Setup) ([]string, error) {
	if s.Config.Weights != weightsConstant {
		return nil, nil // doubly stochastic by construction
	}
	return s.gossipStable("theta", s.Config.Theta, 0)
}

// mixingStable requires all eigenvalues of W to be above -1. With an eigenvalue of -1, averaging
// maps a difference that alternates between neighbours to its negative, so it never shrinks.
func mixingStable(s *Setup) ([]string, error) {
	if s.Graph.N == 1 {
		return nil, nil
	}
	if least := s.Mixing.Spectrum()[0]; least < -1+1e-9 {
		return nil, Invalid("mixing", s.Config.Mixing, "has the eigenvalue %.6g on graph %s; %s needs all above "+
			"-1: use metropolis, or smaller weights", least, s.Config.Graph, s.Config.Algo)
	}
	return nil, nil
}

// diffusionStable requires the eigenvalues of W to be above -1/3, at which differences between agents
// that no curvature shrinks stay as they are. A round maps them and y to W·(x-y) and y + (I-W)·(x-y),
// whatever the number of its steps.
func diffusionStable(s *Setup) (warnings []string, err error) {
	if s.Graph.N == 1 {
		return nil, nil
	}
	c := s.Config
	switch least := s.Mixing.Spectrum()[0]; {
	case least < -1.0/3-1e-9:
		return nil, Invalid("mixing", c.Mixing, "has the eigenvalue %.6g on graph %s, and %s diverges below -1/3: use "+
			"half-lazy(%s), which has none below 0", least, c.Graph, c.Algo, c.Mixing)
	case least < -1.0/3+1e-9:
		return []string{fmt.Sprintf("mixing %s has the eigenvalue -1/3 on graph %s, at which %s leaves some "+
			"differences between agents as they are: half-lazy(%[1]s) does not", c.Mixing, c.Graph, c.Algo)}, nil
	}
	return nil, nil
}

// scaffnewStable warns where the averaging (1-share)·I + share·W is not that of diffusionStable: of
// rounds of equal length, scaffnew is led with that matrix. Where a coin ends rounds it may converge.
func scaffnewStable(s *Setup) ([]string, error) {
	if _, err := mixingStable(s); err != nil || s.Graph.N == 1 {
		return nil, err
	}
	c, spread := s.Config, 1-s.Mixing.Spectrum()[0]
	if c.Share*spread <= 4.0/3+1e-9 {
		return nil, nil
	}
	return []string{fmt.Sprintf("share %v of mixing %s on graph %s averages with the eigenvalue %.4g: below -1/3 "+
		"differences between agents may grow, and the more so the smaller alpha is; share %.3g is safe", c.Share,
		c.Mixing, c.Graph, 1-c.Share*spread, 1/spread)}, nil
}

// proxStable refuses a single agent: the step size 1/(2·rho·degree) needs neighbours.
func proxStable(s *Setup) ([]string, error) {
	if s.Graph.N == 1 {
		return nil, Invalid("agents", 1,
			"prox-gpda takes its step size from the number of neighbours: use 2 or more, or sgd")
	}
	return nil, nil
}

// settleRho resolves rho auto: it makes alpha the largest step 1/(2·rho·degree) of all agents.
func (s *Setup) settleRho() {
	c := &s.Config
	if c.Algo != "prox-gpda" || !c.given.Rho.Auto || s.Graph.N == 1 {
		return
	}
	least := math.MaxInt
	for i := range s.Graph.N {
		least = min(least, s.Graph.Degree(i))
	}
	c.Rho = sixDigits(1 / (2 * c.Alpha * float64(least)))
}
