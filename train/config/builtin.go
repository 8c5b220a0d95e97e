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
var builtin = []Method{
	{Name: "fspda-sa",
		About: About{"k values of the model", "nE 2 v k", "1 (dual)", exactOnSkew, anyGraph, "FSPDA, equation 8"},
		Keys:  []string{"gamma", "beta", "dual"},
		Masks: true, Optimizers: anyOptimizer, Placements: anyPlacement, Dual: true, Check: fspdaStable,
		New: func(s *Setup) algo.Algorithm {
			c := s.Config
			return algo.SA{Gamma: c.Gamma, Beta: c.Beta, Stale: c.Dual == "stale-neighbour", Descent: s.Descent()}
		}},
	{Name: "fspda-storm",
		About: About{"k values of two models", "nE 4 v k", "4, or 5", exactOnSkew, anyGraph,
			"FSPDA, equation 10, appendix"},
		Keys:  []string{"gamma", "beta", "a_x", "a_lambda", "storm_start", "storm_lambda"},
		Masks: true, Dual: true, Check: fspdaStable, New: func(s *Setup) algo.Algorithm {
			c := s.Config
			return algo.STORM{Gamma: c.Gamma, Beta: c.Beta, AX: c.AX, ALambda: c.ALambda,
				ZeroStart: c.StormStart == "zero", Lagged: c.StormLambda == "lagged"}
		}},
	{Name: "dsgd",
		About: About{"k values of the model", "nE 2 v k", "0", biasedOnSkew, anyGraph,
			"Lian and others 2017; Koloskova and others 2020"},
		Keys:  []string{"theta", "weights", "order"},
		Masks: true, Optimizers: anyOptimizer, Check: dsgdStable, New: func(s *Setup) algo.Algorithm {
			c := s.Config
			return algo.DSGD{Theta: c.Theta, Metropolis: c.Weights != weightsConstant, ATC: c.Order == "atc",
				Descent: s.Descent()}
		}},
	{Name: "dmsgd",
		About:      About{"model and momentum", "nE 4 v d", "1", biasedOnSkew, anyGraph, "Yu, Jin and Yang 2019"},
		Optimizers: heavyBallOnly,
		New:        func(s *Setup) algo.Algorithm { return algo.DmSGD{Mu: s.Config.Momentum} }},
	{Name: "qg-dsgdm",
		About: About{"the model", "nE 2 v d", "1, or 2 with local steps", "bias of dsgd, whatever mu",
			"any graph; momentum below about 0.5 where few edges of many agents are active together",
			"Lin, Karimireddy, Stich and Jaggi 2021, algorithm 1"},
		Keys: []string{"local_steps"}, Edges: AnyRounds, Check: qgStable,
		Optimizers: []string{optimizerHeavyBall, optimizerNesterov}, New: func(s *Setup) algo.Algorithm {
			c := s.Config
			return algo.QG{Mu: c.Momentum, Nesterov: c.optimizer().Nesterov, H: c.LocalSteps}
		}},
	{Name: "decentlam",
		About: About{"the model", "nE 2 v d", "1", "bias of dsgd, whatever mu",
			"any graph; momentum below about 0.5 where few edges are active together",
			"Yuan and others 2021, algorithm 2"},
		Edges: ManyEdges, Optimizers: heavyBallOnly, Check: decentlamStable,
		New: func(s *Setup) algo.Algorithm { return algo.DecentLaM{Mu: s.Config.Momentum} }},
	{Name: "dsgt",
		About: About{"model and tracker; form atc one after the other", "nE 4 v d", "1; form atc 2", exactOnSkew,
			anyGraph, "Pu and Nedić 2021; form atc Xu, Zhu, Soh and Xie 2015"},
		Params: []Param{trackingForm("semi-atc", "cta", "atc")}, Optimizers: anyOptimizer,
		Placements: anyPlacement, Takes: TrackedGradient,
		New: func(s *Setup) algo.Algorithm { return s.tracking(s.Descent()) }},
	{Name: "gt-dsgdm",
		About: About{"model and tracker", "nE 4 v d", "1; form atc 2", exactOnSkew, anyGraph,
			"dsgt with momentum behind the tracker"},
		Params:     []Param{trackingForm("semi-atc", "cta", "atc")},
		Optimizers: []string{optimizerHeavyBall, optimizerNesterov}, New: (*Setup).correctedTracking},
	{Name: "momentum-tracking",
		About: About{"model and tracker", "nE 4 v d", "1; form atc 2", exactOnSkew, anyGraph,
			"Takezawa and others 2022"},
		Params:     []Param{trackingForm("cta", "semi-atc", "atc")},
		Optimizers: []string{optimizerHeavyBall, optimizerNesterov},
		New:        func(s *Setup) algo.Algorithm { return s.tracking(s.Descent()) }},
	{Name: "gt-adam",
		About: About{"model and tracker", "nE 4 v d", "2; form atc 3", "error of the order of alpha", anyGraph,
			"Carnevale, Farina, Notarnicola and Notarstefano 2022"},
		Params: []Param{trackingForm("cta", "semi-atc", "atc")}, Optimizers: []string{optimizerGTAdam},
		New: (*Setup).correctedTracking},
	{Name: "sgp",
		About: About{"the model, one way; a weight on irregular graphs", "v d an arc; + 32 with a weight", "0",
			biasedOnSkew, "directed: one-peer-exp, static-exp, push(k), arcs(PATH)",
			"Assran, Loizou, Ballas and Rabbat 2019, algorithm 1"},
		Edges: OneWay, Shifts: true, Optimizers: anyOptimizer, Check: sgpStable,
		New: func(s *Setup) algo.Algorithm {
			return algo.SGP{Regular: s.Directed().Regular(), Descent: s.Descent()}
		}},
	{Name: "relaysgd",
		About: About{"a sum of models", "2(n-1) v d", "1, and 1 an edge", exactOnSkew, "trees, all edges",
			"Vogels and others 2021, algorithm 1"},
		Edges: WholeGraph, Tree: true, Shifts: true, Optimizers: anyOptimizer, Check: treeOnly,
		Params: []Param{{Name: "normalize", Choices: []string{"agents", "counts"},
			Help: "what the sum of models is divided by: agents, where x^0 stands for models that have not arrived " +
				"yet, or counts, the number of those that have"}},
		New: func(s *Setup) algo.Algorithm {
			return algo.Relay{N: s.Graph.N, ByCount: s.Choice("normalize") == "counts", Descent: s.Descent()}
		}},
	{
		Name: "powergossip",
		About: About{"one product of each matrix with a vector; vectors whole",
			"nE 2 v (rows or columns of all matrices + rest)", "0; rows + columns of all matrices an edge",
			biasedOnSkew, anyGraph, "Vogels, Karimireddy and Jaggi 2020, algorithm 1, rank 1"},
		Shifts:     true,
		Optimizers: anyOptimizer,
		Params: []Param{{Name: "theta", Default: 1, Range: "(0, 1]",
			Help: "share of the way to the neighbours' mean, along the directions that were compared"}},
		New: func(s *Setup) algo.Algorithm { return s.sketches(s.Param("theta")) },
	},
	{Name: "fspda-sa-sketch",
		About: About{"one product of each matrix with a vector; vectors whole",
			"nE 2 v (rows or columns of all matrices + rest)", "1; rows + columns of all matrices an edge",
			exactOnSkew + " (measured; experimental)", anyGraph, "FSPDA-SA over the sketches of powergossip"},
		Keys: []string{"gamma", "beta"}, Shifts: true, Dual: true, Optimizers: anyOptimizer,
		Placements: anyPlacement, Check: fspdaStable, New: func(s *Setup) algo.Algorithm {
			return algo.SketchedSA{Gamma: s.Config.Gamma, Beta: s.Config.Beta, PowerGossip: s.sketches(0)}
		}},
	{Name: "edm",
		About: About{"the model", "nE 2 v d", "1", exactOnSkew, staticGraph + "; eigenvalues of W above -1/3",
			"Hu and others 2025: d2 with momentum"},
		Edges: WholeGraph, Mixing: true, Optimizers: []string{optimizerHeavyBall, optimizerNesterov},
		Check: diffusionStable, New: func(s *Setup) algo.Algorithm { return algo.LED{Tau: 1, Descent: s.Descent()} }},
	{Name: "exact-diffusion",
		About: About{"the model", "nE 2 v d", "1", exactOnSkew, staticGraph,
			"Yuan, Ying, Zhao and Sayed 2018: d2 with (I+W)/2"},
		Edges: WholeGraph, Mixing: true, HalfLazy: true, Optimizers: anyOptimizer,
		Placements: anyPlacement, Check: mixingStable,
		New: func(s *Setup) algo.Algorithm { return algo.LED{Tau: 1, Descent: s.Descent()} }},
	{Name: "d2",
		About: About{"the model", "nE 2 v d", "1", exactOnSkew, staticGraph + "; eigenvalues of W above -1/3",
			"Tang, Lian, Yan, Zhang and Liu 2018"},
		Edges: WholeGraph, Mixing: true, Optimizers: anyOptimizer, Placements: anyPlacement,
		Check: diffusionStable, New: func(s *Setup) algo.Algorithm { return algo.LED{Tau: 1, Descent: s.Descent()} }},
	{Name: "scaffnew",
		About: About{"the model, when the coin says so", "nE 2 v d", "1", exactOnSkew,
			"any graph, all edges or none", "Mishchenko, Malinovsky, Stich and Richtárik 2022"},
		Keys:  []string{"local_steps", "share"},
		Edges: Coins, Mixing: true, Optimizers: anyOptimizer, Placements: anyPlacement,
		Check: scaffnewStable, New: func(s *Setup) algo.Algorithm {
			p := 1.0
			if len(s.Graph.Edges) > 0 {
				p = s.Process.Rate(0)
			}
			return algo.Scaffnew{P: p, C: s.Config.Share, Descent: s.Descent()}
		}},
	{Name: "led",
		About: About{"the model, at the end of a round", "nE 2 v d a round", "1", exactOnSkew,
			staticGraph + ", in rounds; eigenvalues of W above -1/3", "Alghunaim 2024"},
		Keys:  []string{"local_steps"},
		Edges: Rounds, Mixing: true, Optimizers: anyOptimizer, Placements: anyPlacement, Check: diffusionStable,
		New: func(s *Setup) algo.Algorithm { return algo.LED{Tau: s.roundSteps(), Descent: s.Descent()} }},
	{Name: "kgt",
		About: About{"two vectors, at the end of a round", "nE 4 v d a round", "2", exactOnSkew,
			staticGraph + ", in rounds", "Liu, Lin, Koloskova and Stich 2024"},
		Keys:  []string{"local_steps", "outer_step"},
		Edges: Rounds, Mixing: true, Optimizers: anyOptimizer, Placements: localOnly, Check: mixingStable,
		New: func(s *Setup) algo.Algorithm {
			return algo.KGT{K: s.roundSteps(), EtaS: s.Config.OuterStep, Descent: s.Descent()}
		}},
	{Name: "diging",
		About:      About{"model and tracker", "nE 4 v d", "1", exactOnSkew, anyGraph, "Nedić, Olshevsky and Shi 2017"},
		Optimizers: anyOptimizer, Placements: anyPlacement, Takes: TrackedGradient,
		New: func(s *Setup) algo.Algorithm { return algo.DIGing{Descent: s.Descent()} }},
	{Name: "extra",
		About: About{"the model", "nE 2 v d", "1", exactOnSkew, staticGraph, "Shi, Ling, Wu and Yin 2015"},
		Keys:  []string{"delta"},
		Edges: WholeGraph, Mixing: true, Exact: true, Check: mixingStable,
		New: func(s *Setup) algo.Algorithm { return algo.EXTRA{Delta: s.Config.Delta} }},
	{Name: "prox-gpda",
		About: About{"the model", "nE 2 v d", "1", exactOnSkew, staticGraph, "Hong, Hajinezhad and Zhao 2017"},
		Keys:  []string{"rho"},
		Edges: WholeGraph, Exact: true, Constant: true, Check: proxStable,
		New: func(s *Setup) algo.Algorithm { return algo.ProxGPDA{Rho: s.Config.Rho} }},
	{Name: "next",
		About: About{"model and tracker", "nE 4 v d", "1", exactOnSkew, anyGraph,
			"Di Lorenzo and Scutari 2016"},
		Keys:  []string{"kappa"},
		Exact: true, Optimizers: anyOptimizer, Placements: anyPlacement, Takes: TrackedGradient,
		New: func(s *Setup) algo.Algorithm { return algo.NEXT{Kappa: s.Config.Kappa, Descent: s.Descent()} }},
	{Name: "beer",
		About: About{"two compressed differences", "payloads of both; indices of randk once", "5", exactOnSkew,
			"any graph, agents that broadcast", "Zhao, Li, Li, Richtárik and Chi 2022, algorithm 1"},
		Keys: []string{"theta", "compress", "norms"}, Edges: Broadcast, Masks: true, Mixing: true,
		Check: chocoStable, New: func(s *Setup) algo.Algorithm { return algo.BEER{Theta: s.Config.Theta} }},
	{Name: "choco",
		About: About{"a compressed difference", "payload of each message", "2", biasedOnSkew,
			"any graph, agents that broadcast", "Koloskova, Stich and Jaggi 2019, algorithm 2; early: EF21"},
		Keys:  []string{"theta", "compress", "norms", "reference_bits", "early"},
		Edges: Broadcast, Masks: true, Mixing: true, Optimizers: anyOptimizer, Check: chocoStable,
		New: func(s *Setup) algo.Algorithm {
			return algo.CHOCO{Theta: s.Config.Theta, Early: s.Config.Early, Descent: s.Descent()}
		}},
	{Name: "swarm",
		About: About{"two copies of the model, or codes of them; blocking one", "nE 4 v d; blocking nE 2 v d",
			"2; blocking 0", biasedOnSkew, "any graph, pairs", "Nadiradze and others 2021"},
		Keys:  []string{"compress", "swarm", "initiator", "local_steps"},
		Edges: Pairs, Optimizers: anyOptimizer, Check: swarmFair, New: func(s *Setup) algo.Algorithm {
			c := s.Config
			return algo.Swarm{Blocking: c.Swarm == "blocking", Steps: max(1, c.LocalSteps), Descent: s.Descent()}
		}},
	{Name: "fspda-async",
		About: About{"k values of the model", "nE 2 v k", "2", exactOnSkew, "any graph, a clock on every edge",
			"FSPDA, appendix on asynchronous implementation"},
		Keys:  []string{"gamma", "beta", "coef", "c_max", "contacts", "clock", "give_up", "drop_after"},
		Edges: Clocks, Masks: true, Dual: true, Constant: true, Check: asyncStable,
		New: func(s *Setup) algo.Algorithm {
			c := s.Config
			return algo.Async{SA: algo.SA{Gamma: c.Gamma, Beta: c.Beta}, Protocol: s.protocol()}
		}},
	{Name: "fspda-async-storm",
		About: About{"k values of two models", "nE 4 v k", "5, or 7", exactOnSkew,
			"any graph, a clock on every edge", "derived from FSPDA, equation 10 and that appendix"},
		Keys:  []string{"gamma", "beta", "a_x", "a_lambda", "coef", "c_max", "contacts"},
		Edges: Clocks, Masks: true, Dual: true, Constant: true, Gradients: 2, Check: asyncStable,
		New: func(s *Setup) algo.Algorithm {
			c := s.Config
			return algo.AsyncSTORM{STORM: algo.STORM{Gamma: c.Gamma, Beta: c.Beta, AX: c.AX, ALambda: c.ALambda},
				Protocol: s.protocol()}
		}},
	{Name: "local-sgd",
		About: About{"the model, an all-reduce at the end of a round", "2(n-1) v d a round", "1",
			"bias, which grows with local_steps", "none", "McMahan and others 2017; Stich 2019"},
		Keys: []string{"local_steps"}, Edges: AllReduce, Optimizers: anyOptimizer,
		New: func(s *Setup) algo.Algorithm {
			return algo.DiLoCo{H: s.Config.LocalSteps, Rate: 1, Descent: s.Descent()}
		}},
	{Name: "diloco",
		About: About{"the change of the model over a round, an all-reduce at its end", "2(n-1) v d a round", "2",
			"bias, which grows with local_steps", "none", "Douillard and others 2023, algorithm 1"},
		Keys: []string{"local_steps"}, Params: []Param{outerLR, {Name: outerMomentum, Default: 0.9,
			Range: "[0, 1)", Help: "Nesterov momentum of the outer steps"}},
		Edges: AllReduce, Optimizers: anyOptimizer,
		New: func(s *Setup) algo.Algorithm {
			return algo.DiLoCo{H: s.Config.LocalSteps, Rate: s.Param(outerLR.Name), Mu: s.Param(outerMomentum),
				Descent: s.Descent()}
		}},
	{Name: "noloco",
		About: About{"the change of the model over a round, and where it began", "4 v d a pair and round", "2",
			"bias, which grows with local_steps", "any graph, pairs, at the end of a round",
			"Kolehmainen and others 2025, equations 1 to 3"},
		Keys: []string{"local_steps"}, Params: []Param{outerLR, {Name: outerMomentum, Default: 0.5,
			Range: "[0, 1)", Help: "heavy ball of the outer steps"}, {Name: "pull", Range: "[0, 2)",
			Help: "gain towards the pair's mean of the slow models; 0 is outer_lr"}},
		Edges: RoundPairs, Optimizers: anyOptimizer, Check: nolocoStable,
		New: func(s *Setup) algo.Algorithm {
			return algo.NoLoCo{H: s.Config.LocalSteps, Rate: s.Param(outerLR.Name), Mu: s.Param(outerMomentum),
				Pull: s.pull(), Descent: s.Descent()}
		}},
	{
		Name: "gasloc",
		About: About{"the slow model, at the end of a round", "nE 2 v d a round", "2",
			"bias, which grows with local_steps",
			"any graph, at the end of a round; outer_momentum below about 0.6 in pairs",
			"Cagnasso, Belilovsky and Oyallon 2026; experimental"},
		Keys: []string{"local_steps", "gamma"},
		Params: []Param{outerLR, {Name: outerMomentum, Default: 0.5,
			Range: "[0, 1)", Help: "momentum of the outer steps, which contains the averaging"}},
		Shifts:     true,
		Edges:      RoundEdges,
		Optimizers: anyOptimizer,
		Check:      gaslocStable,
		New: func(s *Setup) algo.Algorithm {
			return algo.GASLoC{H: s.Config.LocalSteps, Rate: s.Param(outerLR.Name), Mu: s.Param(outerMomentum),
				Gamma: s.Config.Gamma, Descent: s.Descent()}
		},
	},
	{Name: "sparta",
		About: About{"k values of the model, an all-reduce", "2(n-1) v k", "0", "bias, which grows as k falls",
			"none", "exogym 2025"},
		Keys: []string{"local_steps"}, Edges: AllReduce, Masks: true, Usual: Usual{Steps: 1},
		Optimizers: anyOptimizer, New: func(s *Setup) algo.Algorithm {
			return algo.SPARTA{Every: s.Config.LocalSteps, Descent: s.Descent()}
		}},
	{Name: "sparta-diloco",
		About: About{"as sparta, and at the end of a round the change of the model over it",
			"2(n-1) v k, and 2(n-1) v d a round", "2", "bias, which grows with outer_steps", "none",
			"exogym 2025; Douillard and others 2023"},
		Keys: []string{"local_steps"}, Edges: AllReduce, Masks: true, Usual: Usual{Steps: 1},
		Optimizers: anyOptimizer, Check: wholeOuterSteps,
		Params: []Param{{Name: "outer_steps", Default: 10, Range: "[2, inf)", Whole: true,
			Help: "iterations from one outer step to the next: a multiple of local_steps"}, outerLR,
			{Name: outerMomentum, Default: 0.9, Range: "[0, 1)", Help: "Nesterov momentum of the outer steps"}},
		New: func(s *Setup) algo.Algorithm {
			return algo.SPARTADiLoCo{Every: s.Config.LocalSteps, DiLoCo: algo.DiLoCo{H: int(s.Param("outer_steps")),
				Rate: s.Param(outerLR.Name), Mu: s.Param(outerMomentum), Descent: s.Descent()}}
		}},
	{Name: "streaming-diloco",
		About: About{"the change of one part of the model over its round, an all-reduce", "2(n-1) v k an exchange",
			"2", "bias, which grows with local_steps / density", "none",
			"Douillard and others 2025, without overlap"},
		Keys: []string{"local_steps"}, Edges: AllReduce, Masks: true,
		Usual: Usual{Steps: 1, Mask: "parts"}, Optimizers: anyOptimizer, Check: inParts,
		Params: []Param{outerLR, {Name: outerMomentum, Default: 0.9, Range: "[0, 1)",
			Help: "Nesterov momentum of the outer steps"}},
		New: func(s *Setup) algo.Algorithm {
			return algo.StreamingDiLoCo{Every: s.Config.LocalSteps, Rate: s.Param(outerLR.Name),
				Mu: s.Param(outerMomentum), Descent: s.Descent()}
		}},
	{Name: "demo",
		About: About{"k cosine coefficients of each chunk of the momentum, to all agents",
			"n(n-1) k (v + iota) a chunk", "1", "bias: steps are signs", "none", "Peng, Quesnelle and Kingma 2024"},
		Keys: []string{"compress"}, Edges: AllGather, Optimizers: []string{optimizerDeMo},
		Params: []Param{{Name: "keep", Default: 0.999, Range: "[0, 1)", Help: "decay rate of the momentum"}},
		New: func(s *Setup) algo.Algorithm {
			return algo.DeMo{Keep: s.Param("keep"), Decay: s.Descent().Decay}
		}},
	{Name: "sgd",
		About: About{"the gradient, an all-reduce", "2(n-1) v d", "0", exactOnSkew, "none", "the central reference"},
		Edges: AllReduce, Optimizers: anyOptimizer, Takes: MeanGradient,
		New: func(s *Setup) algo.Algorithm { return algo.SGD{Descent: s.Descent()} }},
}

const outerMomentum = "outer_momentum"

var outerLR = Param{Name: "outer_lr", Default: 0.7, Range: "(0, 2]", Help: "step size of the outer steps"}

// pull is the gain of noloco towards the pair's mean.
func (s *Setup) pull() float64 { return cmp.Or(s.Param("pull"), s.Param(outerLR.Name)) }

// nolocoStable refuses gains at which the slow models of pairs drift apart: those that equation 74
// of its paper excludes, and those at which a pair passes its mean before its agents meet again.
func nolocoStable(s *Setup) ([]string, error) {
	mu := s.Param(outerMomentum)
	if most := math.Sqrt(2 + mu*mu); !(s.pull() > mu && s.pull() < most) {
		return nil, Invalid("params.pull", s.pull(), "must be above outer_momentum %v and below %.4g, or the slow "+
			"models of the agents drift apart", mu, most)
	}
	return nil, s.momentumStable("params."+outerMomentum, gossipMomentum{sumOfPulls{}, mu, s.Config.LocalSteps,
		constantWeight(s.pull() / 2)})
}

// sketches is powergossip on the tensors of the model.
func (s *Setup) sketches(theta float64) algo.PowerGossip {
	return algo.PowerGossip{Theta: theta, Tensors: s.Tensors, Draw: drawDirection(s.Config.Seed), Descent: s.Descent()}
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

// tracking is gradient tracking in the form of the configuration.
func (s *Setup) tracking(d algo.Descent) algo.Algorithm {
	switch s.Choice("form") {
	case "cta":
		return algo.DIGing{Descent: d}
	case "atc":
		return algo.DSGT{Descent: d}
	}
	return algo.NEXT{Descent: d}
}

// correctedTracking is tracking whose optimizer takes the corrected gradient.
func (s *Setup) correctedTracking() algo.Algorithm {
	d := s.Descent()
	d.Corrected = true
	return s.tracking(d)
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

// protocol is the protocol of an asynchronous algorithm.
func (s *Setup) protocol() algo.Protocol {
	return algo.Protocol{Coef: algo.Coefficient(s.Config.Coef), CMax: s.Config.CMax}
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
