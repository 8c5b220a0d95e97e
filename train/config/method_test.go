package config

import (
	"strings"
	"testing"

	"fspda/train/algo"
)

// What an algorithm has no use for is refused, with what was given, what is possible and what to
// do.
func TestMethodRefusals(t *testing.T) {
	refuses(t, map[string]refusal{
		"algo": {func(c *Config) { c.Algo = "fspda-strom" }, []string{`algo "fspda-strom"`,
			"did you mean fspda-storm"}},
		"storm heavy ball": {func(c *Config) { c.Algo, c.Momentum = "fspda-storm", 0.9 },
			[]string{"momentum 0.9", "no heavy ball", "momentum 0", "fspda-sa"}},
		"storm adamw": {func(c *Config) { c.Algo, c.Optimizer = "fspda-storm", "adamw" },
			[]string{"optimizer adamw", "stated for sgd", "fspda-sa"}},
		"qg adamw": {func(c *Config) { c.Algo, c.Optimizer = "qg-dsgdm", "adamw" },
			[]string{"optimizer adamw", "heavy-ball or nesterov"}},
		"momentum of sgd": {func(c *Config) { c.Optimizer, c.Momentum = "sgd", 0.9 },
			[]string{"momentum 0.9", "heavy-ball"}},
		"momentum of adamw": {func(c *Config) { c.Optimizer, c.Momentum = "adamw", 0.9 },
			[]string{"momentum 0.9", "beta1"}},
		"beta without adamw": {func(c *Config) { c.Beta2 = 0.99 }, []string{"optimizer sgd", "does not use beta1"}},
		"placement of dsgd": {func(c *Config) { c.Algo, c.Optimizer, c.Placement = "dsgd", "adamw", "local" },
			[]string{"placement local", "no correction"}},
		"placement of sgd": {func(c *Config) { c.Placement = "local" }, []string{"placement local", "optimizer sgd"}},
		"placement of kgt": {func(c *Config) { c.Algo, c.Optimizer, c.Placement = "kgt", "adamw", "corrected" },
			[]string{"placement corrected", "kgt"}},
		"decoupled storm": {func(c *Config) { c.Algo, c.DecayForm = "fspda-storm", "decoupled" },
			[]string{"decay_form decoupled", "fspda-storm"}},
		"no decay": {func(c *Config) { c.WeightDecay, c.DecayForm = 0, "decoupled" },
			[]string{"weight_decay is 0"}},
		"nothing frozen": {func(c *Config) { c.Freeze = "," }, []string{"freeze ,", "expected names"}},
		"no factors":     {func(c *Config) { c.LayerLR = ", " }, []string{"layer_lr , ", "expected names"}},
		"factors of adamw": {func(c *Config) { c.Optimizer, c.LayerLR = "adamw", "fc1=2" },
			[]string{"layer_lr fc1=2", "adamw"}},
		"d2 of a ring of four": {func(c *Config) {
			c.Algo, c.Agents, c.Graph, c.Mixing, c.Mask, c.Density = "d2", 4, "ring", "laplacian(0.4)", "all", 1
		}, []string{"mixing laplacian(0.4)", "-1/3", "half-lazy(laplacian(0.4))"}},
		"led of a cube": {func(c *Config) {
			c.Algo, c.Agents, c.Graph, c.Mask, c.Density = "led", 8, "hypercube", "all", 1
			c.SetExplicit("mixing")
		}, []string{"mixing metropolis", "eigenvalue -0.5", "led diverges", "half-lazy(metropolis)"}},
		"extra heavy ball": {func(c *Config) { c.Algo, c.Momentum = "extra", 0.9 },
			[]string{"momentum 0.9", "no heavy ball"}},
		"relaysgd on a ring": {func(c *Config) { c.Algo, c.Graph = "relaysgd", "ring" },
			[]string{"graph ring", "5 edges among 5 agents", "binary-tree"}},
		"relaysgd fp16": {func(c *Config) { c.Algo, c.Graph, c.Wire = "relaysgd", "path", "fp16" },
			[]string{"wire fp16", "counts", "fp32"}},
		"relaysgd frozen": {func(c *Config) { c.Algo, c.Graph, c.Freeze = "relaysgd", "path", "fc1" },
			[]string{"freeze fc1", "rounding"}},
		"powergossip frozen": {func(c *Config) { c.Algo, c.Freeze = "powergossip", "fc1" }, []string{"freeze " +
			"fc1", "or more"}},
		"sgp both ways": {func(c *Config) { c.Algo, c.Edges = "sgp", "one-edge" }, []string{"edges " +
			"one-edge", "one way"}},
		"sgp fp16": {func(c *Config) { c.Algo, c.Wire = "sgp", "fp16" }, []string{"wire " +
			"fp16", "one-peer-exp"}},
		"one-peer-exp": {func(c *Config) { c.Algo, c.Agents, c.Edges = "sgp", 8, "static-exp" }, []string{"no edge",
			"exponential"}},
		"beer heavy ball": {func(c *Config) { c.Algo, c.Momentum = "beer", 0.9 }, []string{"momentum 0.9", "no " +
			"heavy ball"}},
		"beer lattice": {func(c *Config) { c.Algo, c.Compress = "beer", "lattice(0.1,16)" },
			[]string{"compress lattice", "beer adds up"}},
		"gt-adam of dsgd": {func(c *Config) { c.Algo, c.Optimizer = "dsgd", "gt-adam" }, []string{"optimizer gt-adam"}},
		"gt-adam beta2":   {func(c *Config) { c.Algo, c.Beta2 = "gt-adam", 0 }, []string{"beta2 0", "above 0"}},
		"samples of adamw": {func(c *Config) { c.Algo, c.Optimizer, c.Objective = "local-sgd", "adamw", "samples" },
			[]string{"objective samples", "no effect", "agents"}},
		"part of a round": {func(c *Config) { c.Algo, c.Iterations, c.LocalSteps = "local-sgd", 3, 10 }, []string{
			"iterations 3", "use 10 iterations"}},
		"gt-dsgdm sgd": {func(c *Config) { c.Algo, c.Optimizer = "gt-dsgdm", "sgd" }, []string{"optimizer " +
			"sgd", "heavy-ball"}},
		"form": {func(c *Config) { c.Algo, c.Params = "dsgt", Params{"form": "act"} }, []string{"params.form",
			"semi-atc"}},
		"a_x": {func(c *Config) { c.Algo, c.AX = "fspda-storm", 0 }, []string{"a_x 0", "at most 1"}},
		"a_lambda": {func(c *Config) { c.Algo, c.ALambda = "fspda-storm", 1.5 },
			[]string{"a_lambda 1.5", "at most 1"}},
		"storm gamma": {func(c *Config) { c.Algo, c.Gamma, c.Eta = "fspda-storm", 1.2, AutoFloat{} },
			[]string{"gamma 1.2", "stable region"}},
		"storm eta": {func(c *Config) { c.Algo, c.Eta = "fspda-storm", AutoFloat{V: 0.6} },
			[]string{"eta 0.6", "reaches gamma 0.5"}},
		"storm stale": {func(c *Config) { c.Algo, c.Dual = "fspda-storm", "stale-neighbour" },
			[]string{"dual stale-neighbour", "only fspda-sa"}},
		"mask": {func(c *Config) { c.Algo, c.Mask = "led", "randk" },
			[]string{"mask randk", "whole vectors", "mask all", "fspda-storm"}},
		"density": {func(c *Config) { c.Algo, c.Density = "diging", 0.01 },
			[]string{"density 0.01", "density 1"}},
		"led one-edge": {func(c *Config) { c.Algo, c.Edges = "led", "one-edge" },
			[]string{"edges one-edge", "periodic(tau)", "edges auto"}},
		"kgt coin": {func(c *Config) { c.Algo, c.Edges = "kgt", "coin(0.5)" },
			[]string{"edges coin(0.5)", "periodic(tau)"}},
		"scaffnew": {func(c *Config) { c.Algo, c.Edges = "scaffnew", "bernoulli(0.5)" },
			[]string{"edges bernoulli(0.5)", "coin(p)"}},
		"extra": {func(c *Config) { c.Algo, c.Edges = "extra", "matching" },
			[]string{"edges matching", "static graph", "edges auto"}},
		"prox edges": {func(c *Config) { c.Algo, c.Edges = "prox-gpda", "one-edge" },
			[]string{"edges one-edge", "static graph"}},
		"prox alone": {func(c *Config) { c.Algo, c.Agents, c.Graph = "prox-gpda", 1, "complete" },
			[]string{"agents 1", "number of neighbours"}},
		"prox schedule": {func(c *Config) { c.Algo, c.Schedule, c.Warmup = "prox-gpda", "cosine", 1 },
			[]string{"schedule cosine", "schedule constant"}},
		"rho": {func(c *Config) { c.Algo, c.Rho = "prox-gpda", AutoFloat{V: -1} },
			[]string{"rho -1", "or auto"}},
		"inside a round": {func(c *Config) { c.Algo, c.Iterations, c.LocalSteps = "led", 60, 7 },
			[]string{"iterations 60", "rounds of 7", "56 or 63"}},
		"evaluated inside": {func(c *Config) { c.Algo, c.Iterations, c.EvalPoints, c.LocalSteps = "kgt", 60, 4, 10 },
			[]string{"eval_points 4", "6 rounds", "such as 3"}},
		"both said": {func(c *Config) { c.Algo, c.LocalSteps, c.Edges = "led", 4, "periodic(5)" },
			[]string{"local_steps 4", "periodic(5)", "rounds of 5"}},
		"no rounds": {func(c *Config) { c.LocalSteps = 5 }, []string{"local_steps 5", "periodic(5)"}},
		"share": {func(c *Config) { c.Algo, c.Share = "scaffnew", 1.1 },
			[]string{"share 1.1", "at most 1"}},
		"outer step": {func(c *Config) { c.Algo, c.OuterStep = "kgt", 0 }, []string{"outer_step 0", "above 0"}},
		"delta":      {func(c *Config) { c.Algo, c.Delta = "extra", 0.6 }, []string{"delta 0.6", "at most 0.5"}},
		"kappa":      {func(c *Config) { c.Algo, c.Kappa = "next", 1 }, []string{"kappa 1", "below 1"}},
		"mixing": {func(c *Config) { c.Algo, c.Mixing = "extra", "uniform" },
			[]string{"mixing", "complete"}},
		"mixing eigenvalue": {func(c *Config) {
			c.Algo, c.Mixing, c.Agents, c.Graph = "extra", "laplacian(0.5)", 4, "ring"
		}, []string{"mixing laplacian(0.5)", "eigenvalue -1", "metropolis"}},
		"storm_start": {func(c *Config) { c.StormStart = "zeros" }, []string{`storm_start "zeros"`,
			"did you mean zero"}},
		"eta_schedule": {func(c *Config) { c.EtaSchedule = "free" }, []string{`eta_schedule "free"`, "coupled"}},
	})
}

// What is auto becomes what the method needs, and the resolved configuration resolves to itself.
func TestMethodDefaults(t *testing.T) {
	for _, c := range []struct {
		algo, edges string
		steps       int
		want        string
	}{
		{"fspda-sa", "auto", 0, "one-edge"}, {"fspda-storm", "auto", 0, "one-edge"}, {"dsgd", "matching", 0,
			"matching"}, {"diging", "auto", 0, "one-edge"},
		{"led", "auto", 0, "periodic(10)"}, {"led", "auto", 20, "periodic(20)"}, {"kgt", "periodic(4)", 0,
			"periodic(4)"}, {"kgt", "full", 1, "full"},
		{"scaffnew", "auto", 0, "coin(0.1)"}, {"scaffnew", "auto", 3, "coin(0.3333333333333333)"}, {"scaffnew",
			"periodic(5)", 5, "periodic(5)"},
		{"extra", "auto", 0, "full"}, {"prox-gpda", "full", 0, "full"}, {"next", "auto", 0, "one-edge"}, {"sgd", "auto",
			0, "full"},
	} {
		cfg := small()
		cfg.Algo, cfg.Edges, cfg.LocalSteps, cfg.EvalPoints = c.algo, c.edges, c.steps, 3
		s, _ := resolve(t, cfg)
		if string(s.Config.Edges) != c.want {
			t.Errorf("%s, edges %s, local_steps %d: edges %s, want %s", c.algo, c.edges, c.steps, s.Config.Edges,
				c.want)
		}
		again, _ := resolve(t, s.Config.Stored())
		if d := again.Config.Stored().Differences(s.Config.Stored()); len(d) > 0 {
			t.Errorf("%s: resolved again it differs: %v", c.algo, d)
		}
	}
}

// rho auto makes alpha the largest step of all agents, 1/(2·rho·degree).
func TestRhoAuto(t *testing.T) {
	c := small()
	c.Algo, c.Graph, c.Alpha = "prox-gpda", "star", 0.25
	s, _ := resolve(t, c)
	if got := 1 / (2 * s.Config.Rho * 1); got < 0.25*(1-1e-5) || got > 0.25*(1+1e-5) {
		t.Errorf("rho %v: the largest step is %v", s.Config.Rho, got)
	}
}

// Evaluations and rounds: accepted just if every evaluation lies between rounds.
func TestRoundsAndEvaluations(t *testing.T) {
	for tau := 1; tau <= 6; tau++ {
		for T := 1; T <= 40; T++ {
			for points := 1; points <= 12; points++ {
				c := Default()
				c.Algo, c.Iterations, c.EvalPoints = "led", T, points
				s := &Setup{Config: resolving(c), Traits: algo.LED{Tau: tau}.Traits()}
				want := true
				for it := range T + 1 {
					if s.EvalAt(it) && it%tau != 0 {
						want = false
					}
				}
				if err := s.checkRounds(); (err == nil) != want {
					t.Fatalf("tau %d, T %d, %d evaluations: error %v, but all between rounds is %v", tau, T, points,
						err, want)
				}
			}
		}
	}
}

// A method stated for exact gradients warns of minibatches.
func TestExactWarning(t *testing.T) {
	c := small()
	c.Algo = "extra"
	if s, _ := resolve(t, c); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "sampling full") {
		t.Errorf("%q", s.Warnings)
	}
	c.Sampling = "full"
	if s, _ := resolve(t, c); len(s.Warnings) != 0 {
		t.Errorf("%q", s.Warnings)
	}
}

// edgeless is an algorithm whose author has not said over which edges its agents communicate.
type edgeless struct{ algo.DSGD }

func (edgeless) Traits() algo.Traits { return algo.Traits{} }

func TestRegisterRefuses(t *testing.T) {
	for name, m := range map[string]Method{
		"no edges": {Name: "mine", New: func(algo.Settings) algo.Algorithm { return edgeless{} }},
		"no name":  {New: func(algo.Settings) algo.Algorithm { return algo.SGD{} }},
		"no New":   {Name: "mine"},
		"taken":    {Name: "dsgd", New: func(algo.Settings) algo.Algorithm { return algo.SGD{} }},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(r.(string), "config: Register") {
					t.Errorf("%s: panic %v", name, r)
				}
			}()
			Register(m)
		}()
	}
}

// Keys of optimizers that are auto are resolved, and what Resolve made is accepted again and has
// the same fingerprint.
func TestOptimizerKeys(t *testing.T) {
	for _, q := range []struct {
		edit                       func(c *Config)
		optimizer, placement, form string
		momentum                   float64
	}{
		{func(*Config) {}, "sgd", "auto", "coupled", 0},
		{func(c *Config) { c.Momentum = 0.5 }, "heavy-ball", "local", "coupled", 0.5},
		{func(c *Config) { c.Optimizer = "nesterov" }, "nesterov", "local", "coupled", 0.9},
		{func(c *Config) { c.Optimizer = "adamw" }, "adamw", "corrected", "decoupled", 0},
		{func(c *Config) { c.Optimizer, c.WeightDecay = "adamw", 0 }, "adamw", "corrected", "auto", 0},
		{func(c *Config) { c.Algo, c.Optimizer = "dsgd", "adamw" }, "adamw", "auto", "decoupled", 0},
		{func(c *Config) { c.Algo, c.Momentum = "diging", 0.5 }, "heavy-ball", "corrected", "coupled", 0.5},
		{func(c *Config) { c.Algo = "qg-dsgdm" }, "heavy-ball", "auto", "coupled", 0.9},
	} {
		c := small()
		q.edit(&c)
		s, _ := resolve(t, c)
		c = s.Config.Stored()
		if c.Optimizer != q.optimizer || c.Placement != q.placement || c.DecayForm != q.form ||
			c.Momentum != q.momentum {
			t.Errorf("optimizer %s, placement %s, decay_form %s, momentum %v, want %+v", c.Optimizer, c.Placement,
				c.DecayForm, c.Momentum, q)
		}
		again, _ := resolve(t, c)
		if again.Config.Stored().Fingerprint() != c.Fingerprint() || string(again.Config.Optimizer) != c.Optimizer {
			t.Errorf("%+v: resolved again it is another configuration", q)
		}
	}
}
