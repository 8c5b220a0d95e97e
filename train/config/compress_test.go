package config

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fspda/train/simnet"
)

// What an algorithm does not admit is refused with the key, the value, the reason and the remedy.
func TestCodecRefusals(t *testing.T) {
	refuses(t, map[string]refusal{
		"sa topk": {func(c *Config) { c.Compress = "topk" }, []string{"compress topk", "both know beforehand",
			"choco"}},
		"led qsgd": {func(c *Config) { c.Algo, c.Compress = "led", "qsgd(7)" },
			[]string{"compress qsgd(7)", "whole vectors"}},
		"choco lattice": {func(c *Config) { c.Algo, c.Compress = "choco", "lattice(0.01,256)" },
			[]string{"compress lattice", "swarm"}},
		"swarm topk": {func(c *Config) { c.Algo, c.Compress = "swarm", "topk" },
			[]string{"compress topk", "lattice(s,q)"}},
		"swarm colours": {func(c *Config) { c.Algo, c.Compress = "swarm", "lattice(0.01,100)" },
			[]string{"compress", "power of two"}},
		"swarm mask": {func(c *Config) { c.Algo, c.Mask = "swarm", "randk" },
			[]string{"mask randk", "mask all"}},
		"swarm full": {func(c *Config) { c.Algo, c.Edges = "swarm", "full" }, []string{"edges full", "pairs",
			"one-edge"}},
		"swarm steps": {func(c *Config) { c.Algo, c.Swarm, c.LocalSteps = "swarm", "nonblocking", 3 },
			[]string{"local_steps 3", "no rounds"}},
		"choco one-edge": {func(c *Config) { c.Algo, c.Edges = "choco", "one-edge" },
			[]string{"edges one-edge", "broadcast(p)"}},
		"choco qsgd(1)": {func(c *Config) { c.Algo, c.Compress = "choco", "qsgd(1)" },
			[]string{"compress qsgd(1)", "no contraction", "qsgd-scaled"}},
		"choco levels": {func(c *Config) { c.Algo, c.Compress = "choco", "qsgd(99999)" },
			[]string{"compress", "65535"}},
		"choco published sign": {func(c *Config) { c.Algo, c.Compress, c.ReferenceBits = "choco", "sign", "published" },
			[]string{"reference_bits published", "no compress sign"}},
		"choco compressor": {func(c *Config) { c.Algo, c.Compress = "choco", "topp" }, []string{"compress", "topk"}},
		"choco qsgd mask": {func(c *Config) { c.Algo, c.Compress, c.Mask = "choco", "qsgd(255)", "block" },
			[]string{"mask block", "every coordinate"}},
		"choco topk mask": {func(c *Config) { c.Algo, c.Compress, c.Mask = "choco", "topk", "block" },
			[]string{"mask block", "largest coordinates", "randk-per-layer"}},
		"beer topk mask": {func(c *Config) { c.Algo, c.Compress, c.Mask, c.Density = "beer", "topk", "cycle", 0.5 },
			[]string{"mask cycle", "compress randk"}},
		"choco qsgd sparse": {func(c *Config) { c.Algo, c.Compress, c.Density = "choco", "identity", 0.3 },
			[]string{"density 0.3", "density 1"}},
		"choco theta": {func(c *Config) { c.Algo, c.Theta = "choco", AutoFloat{V: 0.5} },
			[]string{"theta 0.5", "diverges", "theta auto"}},
		"choco theta 2": {func(c *Config) { c.Algo, c.Compress, c.Theta = "choco", "identity", AutoFloat{V: 1.5} },
			[]string{"theta 1.5", "at most 1"}},
		"async edges": {func(c *Config) { c.Algo, c.Edges = "fspda-async", "matching" },
			[]string{"edges matching", "clock on every edge"}},
		"async momentum": {func(c *Config) { c.Algo, c.Momentum = "fspda-async", 0.5 },
			[]string{"momentum 0.5", "no heavy ball"}},
		"async schedule": {func(c *Config) { c.Algo, c.Schedule, c.Warmup = "fspda-async", "cosine", 1 },
			[]string{"schedule cosine", "constant"}},
		"async gamma": {func(c *Config) { c.Algo, c.Gamma, c.Eta = "fspda-async", 1.1, AutoFloat{} },
			[]string{"gamma 1.1", "stable region"}},
		"async law": {func(c *Config) { c.Algo, c.ComputeTime = "fspda-async", "gamma(2)" },
			[]string{"compute_time gamma(2)", "lognormal(sigma)"}},
		"async law number": {func(c *Config) { c.Algo, c.ComputeTime = "fspda-async", "exp(2)" },
			[]string{"compute_time exp(2)"}},
		"async slowness": {func(c *Config) { c.Algo, c.Slowness = "fspda-async", "linear(0.5)" },
			[]string{"slowness linear(0.5)", "straggler(f)"}},
		"async compress": {func(c *Config) { c.Algo, c.Compress = "fspda-async", "qsgd(3)" },
			[]string{"compress qsgd(3)"}},
		"coef":     {func(c *Config) { c.Coef = "inverted" }, []string{`coef "inverted"`, "inverse"}},
		"c_max":    {func(c *Config) { c.CMax = AutoFloat{} }, []string{"c_max 0"}},
		"contacts": {func(c *Config) { c.Contacts = -1 }, []string{"contacts -1"}},
	})
}

// theta auto of DSGD is the mean of a pair, or what all edges at once bear.
func TestThetaOfPairs(t *testing.T) {
	for _, c := range []struct {
		graph, edges string
		want         float64
	}{
		{"ring", "one-edge", 0.5}, {"path", "full", 0.5}, {"ring", "full", 0.333333}, {"star", "full", 0.166667},
		{"complete", "periodic(3)", 0.166667},
	} {
		cfg := small()
		cfg.Algo, cfg.Agents, cfg.Graph, cfg.Edges, cfg.Mask, cfg.Density = "dsgd", 6, c.graph, c.edges, "all", 1
		s, err := cfg.Resolve(labSet, labModel(t, cfg))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Config.Theta; got != c.want {
			t.Errorf("graph %s, edges %s: theta %v, want %v", c.graph, c.edges, got, c.want)
		}
	}
}

// theta auto is half of 2·delta/(2-delta)/(1-lambda_min(W)): on the ring of 5, 1-lambda_min is
// (2-2·cos(144°))/3. Above the limit there is a warning, at twice the limit an error; blocking
// pairs on an irregular graph warn.
func TestCodecDefaults(t *testing.T) {
	c := small()
	c.Algo, c.Edges = "choco", "broadcast(0.5)"
	s, _ := resolve(t, c)
	delta := s.Compressor.Delta() * 0.5
	want := delta / (2 - delta) / ((2 - 2*math.Cos(0.8*math.Pi)) / 3)
	if got := s.Config.Theta; math.Abs(got/want-1) > 1e-5 {
		t.Errorf("theta %v, want %v", s.Config.Theta, want)
	}
	if again, _ := resolve(t, s.Config.Stored()); len(again.Config.Stored().Differences(s.Config.Stored())) > 0 ||
		len(again.Warnings) > 0 {
		t.Errorf("resolved again it differs: %v, %q", again.Config.Stored().Differences(s.Config.Stored()),
			again.Warnings)
	}
	c.Theta = AutoFloat{V: 3 * want}
	if s, _ := resolve(t, c); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "may grow") {
		t.Errorf("%q", s.Warnings)
	}
	c = small()
	c.Algo, c.Swarm, c.Graph = "swarm", "blocking", "star"
	if s, _ := resolve(t, c); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "weighed by degree") {
		t.Errorf("%q", s.Warnings)
	}
	c.Edges = "one-edge-round-robin"
	if s, _ := resolve(t, c); len(s.Warnings) != 0 || s.Config.Mask != "all" || s.Config.Compress != "identity" {
		t.Errorf("%q, %+v", s.Warnings, s.Config)
	}
}

// The timeline: a slow agent finishes fewer gradients, edges ring as often as asked, and another
// seed is another history.
func TestTimeline(t *testing.T) {
	c := small()
	c.Algo, c.Slowness, c.ComputeTime, c.Contacts, c.Iterations = "fspda-async", "straggler(4)", "constant", 0.5, 4000
	history := func(seed uint64) (gradients [5]int, meetings int, log string) {
		c.Seed = seed
		s, _ := resolve(t, c)
		l := s.NewTimeline()
		before := 0.0
		for l.Latest < c.Iterations {
			l.Advance(func(i int, o simnet.Op) {
				if o.Kind == simnet.Move && o.Step.C != 0 {
					gradients[i]++
				} else if o.Kind == simnet.Meet || o.Kind == simnet.Decline {
					meetings++
				}
				if len(log) < 2000 {
					log += fmt.Sprintf("%d %v %v\n", i, o.Kind, o.Step)
				}
			})
			if l.Now < before {
				t.Fatal("time goes back")
			}
			before = l.Now
		}
		per := l.Now
		if rate := float64(meetings) / 5 / per; math.Abs(rate-0.5) > 0.03 {
			t.Errorf("an agent is called %.3f times in a unit of time, want 0.5", rate)
		}
		return gradients, meetings, log
	}
	g, _, log := history(1)
	for i := range 4 {
		if ratio := float64(g[i]) / float64(g[4]); ratio < 3.2 || ratio > 8 { // interruptions hit the straggler hardest
			t.Errorf("agent %d finished %d gradients, the straggler %d", i, g[i], g[4])
		}
	}
	if _, _, again := history(1); again != log {
		t.Error("one seed, two histories")
	}
	if _, _, other := history(2); other == log {
		t.Error("two seeds, one history")
	}
}
