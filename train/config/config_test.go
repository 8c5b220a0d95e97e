package config

import (
	"errors"
	"math"
	"strings"
	"testing"

	"fspda/dist"
)

func TestConfigRoundTrip(t *testing.T) {
	c := Default()
	c.Hidden, c.Eta, c.Seed = Widths{300, 100}, AutoFloat{V: 3.5e-7}, 1<<63+5
	var back Config
	if err := back.Parse("config.yaml", c.YAML()); err != nil {
		t.Fatal(err)
	}
	if d := c.Differences(back); len(d) > 0 || back.Fingerprint() != c.Fingerprint() {
		t.Errorf("a configuration does not survive YAML: %v\n%s", d, c.YAML())
	}
}

func TestParseKeepsWhatItIsNotTold(t *testing.T) {
	c := Default()
	if err := c.Parse("x.yaml", []byte(
		"\ufeffalpha: 0.03\nhidden: 64\n# a comment\neta: 1e-5\npartition: dirichlet(0.1)\n")); err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Alpha, want.Hidden, want.Eta, want.Partition = 0.03, Widths{64}, AutoFloat{V: 1e-5}, "dirichlet(0.1)"
	if d := want.Differences(c); len(d) > 0 {
		t.Error(d)
	}
	for text, eta := range map[string]string{`eta: "auto"`: "auto", "eta: '0.25' # quoted": "0.25",
		"eta: auto # a comment": "auto"} {
		c := Default()
		c.Eta = AutoFloat{V: 3}
		if err := c.Parse("x.yaml", []byte(text)); err != nil || c.Eta.String() != eta {
			t.Errorf("%q: %s, %v", text, c.Eta, err)
		}
	}
	for text, widths := range map[string]string{"hidden: [3, 4]": "3,4", "hidden:\n  - 5\n  - 6": "5,6",
		"hidden: none": "none", "hidden: []": "none", "hidden: 7,8": "7,8", `hidden: "7,8"`: "7,8", "": "100"} {
		c := Default()
		if err := c.Parse("x.yaml", []byte(text)); err != nil || c.Hidden.String() != widths {
			t.Errorf("%q: %s, %v", text, c.Hidden, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"alhpa: 0.1":           `did you mean "alpha"?`,
		"weight-decay: 1":      `did you mean "weight_decay"?`,
		"zzzzzzzzz: 1":         "the keys are data,",
		"alpha: fast":          "alpha fast: expected a number",
		"alpha: [1":            "x.yaml",
		"just words":           "x.yaml",
		"eta: soon":            "neither a number nor auto",
		"hidden: [0]":          "not a list of positive widths",
		"hidden: [-5]":         "not a list of positive widths",
		"iterations: 1.5":      "expected a whole number",
		"seed: -1":             "seed -1: expected a whole number of at least 0",
		"agents: ten":          "expected a whole number",
		"alpha: 1\nalpha: 2\n": "x.yaml",
	} {
		c := Default()
		err := c.Parse("x.yaml", []byte(text))
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one about %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("alpha: 1"))
	f.Add(Default().YAML())
	f.Add([]byte("hidden: [1, 2]\neta: auto"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := Default()
		if c.Parse("fuzz", text) != nil {
			return
		}
		var back Config
		if err := back.Parse("again", c.YAML()); err != nil {
			t.Fatalf("accepted, but its own YAML is refused: %v\n%s", err, c.YAML())
		}
	})
}

// Everything that is wrong by itself, or does not fit together, is refused with the key, the value
// and a remedy.
func TestRefusals(t *testing.T) {
	refuses(t, map[string]refusal{
		"density 0": {func(c *Config) { c.Density = 0 }, []string{"density 0", "above 0 and at most 1"}},
		"density 2": {func(c *Config) { c.Density = 2 }, []string{"density 2", "above 0 and at most 1"}},
		"alpha 0 in single precision": {func(c *Config) { c.Alpha = 1e-46 },
			[]string{"alpha 1e-46", "it is 0 in single precision", "above 0"}},
		"alpha infinite in single precision": {func(c *Config) { c.Alpha = 1e39 },
			[]string{"alpha 1e+39", "it is +Inf in single precision"}},
		"eps 0 in single precision": {func(c *Config) { c.Algo, c.Eps = "adamw", 1e-60 },
			[]string{"eps 1e-60", "it is 0 in single precision"}},
		"two at once": {func(c *Config) { c.Density = 2; c.Alpha = -1 }, []string{"density 2", "alpha -1"}},
		"algo": {func(c *Config) { c.Algo = "fspda-as" },
			[]string{`algo "fspda-as"`, "did you mean fspda-sa"}},
		"no iterations": {func(c *Config) { c.Iterations = 0 }, []string{"iterations 0", "at least 1"}},
		"momentum":      {func(c *Config) { c.Momentum = 1 }, []string{"momentum 1", "below 1"}},
		"batch":         {func(c *Config) { c.Batch = 81 }, []string{"batch 81", "80"}},
		"partition": {func(c *Config) { c.Partition = "sortd" },
			[]string{`config: partition: data: "sortd" is not known; did you mean sorted?`}},
		"by-class": {func(c *Config) { c.Partition = "by-class" },
			[]string{"config: partition by-class: data: 5 agents and 10 classes"}},
		"graph":        {func(c *Config) { c.Graph = "rign" }, []string{"graph", "ring"}},
		"edges":        {func(c *Config) { c.Edges = "one" }, []string{"edges", "one-edge"}},
		"mask":         {func(c *Config) { c.Mask = "topk" }, []string{"mask", "randk"}},
		"disconnected": {func(c *Config) { c.Graph = "er(0.001)" }, []string{"graph", "connected"}},
		"er10":         {func(c *Config) { c.Graph = "er10-published" }, []string{"graph", "10"}},
		"gamma 1": {func(c *Config) { c.Gamma, c.Eta.V, c.Eta.Auto = 1, 0, false },
			[]string{"gamma 1", "stable region", "0.5"}},
		"gamma 0": {func(c *Config) { c.Gamma = 0; c.Eta = AutoFloat{} }, []string{"gamma 0", "above 0"}},
		"gamma full": {func(c *Config) { c.Edges, c.Density, c.Gamma = "full", 1, 0.7 },
			[]string{"gamma 0.7", "all edges at once"}},
		"gamma periodic": {func(c *Config) { c.Edges, c.Mask, c.Gamma = "periodic(5)", "all", 0.6 },
			[]string{"gamma 0.6", "all edges at once"}},
		"eta": {func(c *Config) { c.Eta = AutoFloat{V: 0.6} }, []string{"eta 0.6", "reaches gamma 0.5"}},
		"theta": {func(c *Config) { c.Algo, c.Theta = "dsgd", AutoFloat{V: 1.2} },
			[]string{"theta 1.2", "stable region"}},
		"dsgd theta at its limit": {func(c *Config) {
			c.Algo, c.Agents, c.Graph, c.Edges, c.Mask, c.Density = "dsgd", 16, "ring", "full", "all", 1
			c.Theta = AutoFloat{V: 0.5}
		}, []string{"theta 0.5", "stable region of graph ring", "weights metropolis"}},
		"every 1e-10": {func(c *Config) { c.Checkpoint = 1e-10 }, []string{"checkpoint_every 1e-10", "0.001 to 1e9"}},
		"every 1e10":  {func(c *Config) { c.Checkpoint = 1e10 }, []string{"checkpoint_every 1e+10", "0.001 to 1e9"}},
		"threads":     {func(c *Config) { c.Threads = 1e6 }, []string{"threads 1000000", "1024"}},
		"many agents": {func(c *Config) { c.Agents, c.Graph = 1e9, "complete" },
			[]string{"partition", "1000000000 agents"}},
		"contacts": {func(c *Config) { c.Algo, c.Contacts = "fspda-async", 1e308 },
			[]string{"contacts", "0 to 1e4"}},
		"sample_tokens":  {func(c *Config) { c.SampleTokens = 1 << 30 }, []string{"sample_tokens", "to 65536"}},
		"average":        {func(c *Config) { c.Average = "ema(1)" }, []string{"average", "ema(1)", "below 1"}},
		"tail":           {func(c *Config) { c.Average = "tail(-1)" }, []string{"average", "tail(-1)", "at least 0"}},
		"random windows": {func(c *Config) { c.EvalRandom = math.MaxInt }, []string{"eval_random", "expected at most"}},
		"warmup":         {func(c *Config) { c.Schedule, c.Warmup = "cosine", 50 }, []string{"warmup 50", "epochs"}},
	})
}

func TestWarnings(t *testing.T) {
	many := small()
	if err := many.Parse("x.yaml", []byte("{iterations: 40, eval_points: 41}")); err != nil {
		t.Fatal(err)
	}
	s, err := many.Resolve(labSet, labModel(t, small()))
	if err != nil || !strings.Contains(strings.Join(s.Warnings, " "), "eval_points 41: the run has 40 iterations") {
		t.Errorf("%v", err)
	}
	c := small()
	c.Eta = AutoFloat{}
	if s, _ := resolve(t, c); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "duals do nothing") {
		t.Errorf("%q", s.Warnings)
	}
	c = small()
	c.Graph, c.Edges, c.Density = "complete", "bernoulli(0.9)", 0.5
	if s, _ := resolve(t, c); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "may diverge") {
		t.Errorf("%q", s.Warnings)
	}
	if s, _ := resolve(t, small()); len(s.Warnings) != 0 {
		t.Errorf("%q", s.Warnings)
	}
}

// eta·beta = gamma²·lambda_2·P(edge)·(k/d)/4, on the complete graph of 5: lambda_2 = 5, P = 1/10.
func TestAutoEta(t *testing.T) {
	c := small()
	c.Graph, c.Beta = "complete", 0.5
	s, _ := resolve(t, c)
	want := 0.25 * 5 / 10 * s.Mask.Density() / 4 / 0.5
	if got := s.Config.Eta; got < want*(1-1e-5) || got > want*(1+1e-5) {
		t.Errorf("eta %v, want %v", s.Config.Eta, want)
	}
}

func TestNearest(t *testing.T) {
	if got := Nearest("desnity", Keys()); got != "density" {
		t.Errorf("%q", got)
	}
	if got := Nearest("qqqqqqqq", Keys()); got != "" {
		t.Errorf("%q", got)
	}
}

func TestFingerprintCoversEveryKey(t *testing.T) {
	base := Default()
	for i, f := range base.Fields() {
		c := Default()
		switch v := c.Fields()[i].Value.(type) {
		case *string:
			*v += "x"
		case *int:
			*v++
		case *uint64:
			*v++
		case *bool:
			*v = !*v
		case *float64:
			*v++
		case *Widths:
			*v = Widths{1, 2}
		case *AutoFloat:
			*v = AutoFloat{V: 7}
		case *Params:
			continue // TestParams: it depends on the algorithm
		}
		if (c.Fingerprint() == base.Fingerprint()) != f.Free() || (len(c.Differences(base)) == 0) != f.Free() {
			t.Errorf("key %s: a resumed run may have another value: %v, but the fingerprint says otherwise", f.Name,
				f.Free())
		}
	}
}

// Eta auto knows graphs whose eigenvalues would take hours, and a long ring is as well connected as
// its formula says.
func TestAutoEtaOfManyAgents(t *testing.T) {
	c := Default()
	c.Agents, c.Graph, c.Edges, c.Mask, c.Density, c.Gamma = 100000, "ring", "full", "all", 1, 0.4
	g, err := dist.ParseGraph(c.Graph, c.Agents, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &Setup{Config: resolving(c), Graph: g}
	s.method, _ = c.findMethod()
	s.Traits = s.method.traits
	if s.Process, err = dist.ParseProcess(c.Edges, g, 1); err != nil {
		t.Fatal(err)
	}
	if s.Mask, err = dist.ParseMask(c.Mask, c.Density, []int{100}, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.steps(); err != nil {
		t.Fatal(err)
	}
	second := 2 - 2*math.Cos(2*math.Pi/float64(c.Agents))
	if want := c.Gamma * c.Gamma * second / 4; math.Abs(s.Config.Eta/want-1) > 1e-5 {
		t.Errorf("eta %v, want %v", s.Config.Eta, want)
	}
}
