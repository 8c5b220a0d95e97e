package algo

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/internal/rng"
)

// Trajectories of optimizers over six iterations, computed in float64 by an independent program:
// the model of agent 0, the objective at the mean model, and another vector of agent 0.
func TestGoldenOptimizers(t *testing.T) {
	adam := Descent{Opt: AdamW{0.9, 0.99, 1e-8}, Decay: &Decay{Rate: 0.01}}
	inside := adam
	inside.Corrected = true
	sa := func(d Descent) SA { return SA{Gamma: 0.4, Beta: 1, Descent: d} }
	tracked := Descent{Opt: HeavyBall{0.5}, Corrected: true}
	for _, c := range []struct {
		name  string
		algo  Algorithm
		start float64
		game  func(g *game)
		x     string
		f     float64
		aux   string
		want  string
		bits  [3]uint64
	}{
		{"heavy ball", DSGD{Descent: heavyBall(0.5)}, 2, alone, "1.2668709067 0.4205754583 0.1341250435", 5.1157943794,
			"", "", [3]uint64{}},
		{"nesterov, L2", DSGD{Descent: Descent{Opt: Nesterov{0.5}}}, 2, withL2,
			"1.2518357344 0.5042890203 0.1849198548", 5.1280767961, "", "", [3]uint64{}},
		{"adamw", DSGD{Descent: adam}, 2, alone, "1.4087178067 1.4016435002 " +
			"1.3989236032", 5.4248545509, "", "", [3]uint64{}},
		{"adamw, clip", DSGD{Descent: adam}, 2, func(g *game) { alone(g); clipped(g) },
			"1.3948010861 1.3901628789 1.3886996688", 5.4093392988, "", "", [3]uint64{}},
		{"fspda-sa nesterov", sa(Descent{Opt: Nesterov{0.5}}), 2, nil, "1.7606819836 1.4408568395 1.0353126634",
			5.1162059084, "lambda", "-1.3393811250 -3.4601882784 -2.2913786962", [3]uint64{768, 792, 1536}},
		{"fspda-sa clip", sa(Descent{}), 2, clipped, "1.9613360821 1.8925089581 1.8651857339", 5.4954525648, "lambda",
			"-0.2082755722 -0.6305621288 -0.6156291542", [3]uint64{768, 792, 1536}},
		{"fspda-sa adamw local", sa(adam), 2, nil, "1.6989774585 1.9372484709 1.7297979881", 5.4502677995, "lambda",
			"-0.5935425897 -1.1343242932 -0.7384384992", [3]uint64{768, 792, 1536}},
		{"fspda-sa adamw corrected", sa(inside), 2, nil, "1.6477497676 1.8530404410 1.6976968885", 5.4183326412,
			"lambda", "-0.5935425897 -1.1343242932 -0.7479252419", [3]uint64{768, 792, 1536}},
		{"dsgd atc adamw", DSGD{Metropolis: true, ATC: true, Descent: adam}, 2, ringed,
			"2.0291885840 2.2403715420 2.0502085924", 5.5260785261, "", "", same(4608)},
		{"dsgdm", DSGD{Metropolis: true, ATC: true, Descent: heavyBall(0.5)}, 0, ringed,
			"2.1195526358 2.3377311669 2.4295697414", 5.1870418250, "", "", same(4608)},
		{"dmsgd", DmSGD{Mu: 0.5}, 0, ringed, "2.1769409041 2.3405618639 2.3820108169", 5.1859986831, "momentum",
			"-1.7719325304 -1.7739826972 -2.2334485070", same(9216)},
		{"qg-dsgdm", QG{Mu: 0.5}, 0, ringed, "2.0108988464 2.2024746798 2.2276778238", 5.3886812504, "momentum",
			"-3.0429216856 -2.9211206827 -2.9735842362", same(4608)},
		{"qg-dsgdm nesterov", QG{Mu: 0.5, Nesterov: true}, 0, ringed, "2.0926890820 2.2372188717 2.3156080481",
			5.2701085330, "momentum", "-2.5164894558 -2.1664415523 -2.2888495510", same(4608)},
		{"decentlam", DecentLaM{Mu: 0.5}, 0, ringed, "2.2148147886 2.3779570208 2.4242444356", 5.1857623686, "momentum",
			"-2.3731984834 -1.9947383568 -2.2243944847", same(4608)},
		{"d2", LED{Tau: 1}, 0, ringed, "1.5108613023 1.5707494143 1.4975882404", 7.1701292519, "y",
			"-0.1859395366 -0.2070028180 -0.1449202396", same(4608)},
		{"exact diffusion", LED{Tau: 1}, 0, halfLazy, "1.5671949084 1.6475551209 1.6319800578", 7.1843276111, "y",
			"-0.2390908571 -0.3702346090 -0.3893495208", same(4608)},
		{"edm", LED{Tau: 1, Descent: heavyBall(0.5)}, 0, ringed, "2.2877932641 2.3639824194 2.3243561693",
			5.1831687757, "y", "-0.3568948706 -0.6210392268 -0.5862551420", same(4608)},
		{"dsgt cta", DIGing{}, 0, ringed, "1.5242675432 1.8857809417 1.9644511964", 7.1822628158, "q",
			"-1.9300417509 -2.2996362420 -2.2114420633", same(9216)},
		{"dsgt semi-atc", NEXT{}, 0, ringed, "1.5082227755 1.6155244938 1.5795316564", 7.1732651633, "q",
			"-1.9293890082 -3.1831241328 -3.3438830161", same(9216)},
		{"gt-dsgdm semi-atc", NEXT{Descent: tracked}, 0, ringed, "2.2740845835 2.3839048018 2.3752310483", 5.1842404848,
			"q", "-1.6932723109 -3.3643585359 -3.2879123644", same(9216)},
		{"dsgt atc", DSGT{}, 0, ringed, "1.4987858955 1.6412235706 1.6198077847", 7.1755525202, "z",
			"-1.9120338968 -3.1293741858 -3.2682218715", same(9216)},
		{"gt-adam", DIGing{Descent: Descent{Opt: GTAdam{0.9, 0.99, 1e-8, 1e6}, Corrected: true}}, 2, ringed,
			"2.4956719660 2.2870033180 2.3024201043", 5.1463859196, "q",
			"-1.3762628039 -3.1556415323 -3.1384706004", same(9216)},
		{"momentum tracking", DIGing{Descent: heavyBall(0.5)}, 0, ringed, "2.2772499042 2.4615024962 2.5283810989",
			5.1886391744, "q", "-3.5032528139 -6.2817509117 -6.5815912021", same(9216)},
		{"local sgd, all-reduce", DiLoCo{H: 2, Rate: 1}, 0, everyPair, "1.4883019303 1.6320067050 1.6009893155",
			7.2069740924, "", "", same(1728)},
		{"local sgd, gossip", DSGD{Metropolis: true, ATC: true}, 0, ringedEvery(2),
			"1.3333242703 1.5750546124 1.6369216972", 7.2198883774, "", "", same(2304)},
		{"diloco", DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Descent: adam}, 2, everyPair,
			"2.1901375613 2.5103739225 2.1898920821", 5.3057276501, "outer_momentum",
			"-0.0713995382 -0.2411551496 -0.0713398709", same(1728)},
		{"noloco", NoLoCo{H: 2, Rate: 0.7, Mu: 0.5, Pull: 0.7, Descent: adam}, 2, tournament,
			"1.9511625468 2.1361359207 1.9810638659", 5.4484141565, "outer_momentum",
			"-0.0750825045 0.0972724589 0.0681532160", same(2304)},
		{"gasloc", GASLoC{H: 2, Rate: 0.7, Mu: 0.5, Gamma: 0.5}, 2, tournament, "2.1962868159 2.0324608353 " +
			"2.0804918746",
			5.1579294304, "past", "2.0003699469 1.5204781654 1.4355361595", same(1152)},
		{"sparta", SPARTA{Every: 1, Descent: adam}, 2, func(g *game) {
			g.edges = func(int) [][2]int { return world{n: 4}.complete() }
		}, "2.0997051588 2.1307612064 2.0863837798", 5.4652124927, "", "", [3]uint64{2304, 2376, 4608}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := goldenGameAt(c.algo, c.start)
			if c.game != nil {
				c.game(g)
			}
			for it := range 6 {
				g.step(t, it)
			}
			check(t, "x_0", g.x(0), c.x)
			if f := goldenObjective(mean(4, g.x)); math.Abs(f-c.f) > 1e-9 {
				t.Errorf("F(xbar) = %.10f, want %.10f", f, c.f)
			}
			if c.aux != "" {
				check(t, c.aux, g.aux(0, c.aux), c.want)
			}
			if g.bits() != c.bits {
				t.Errorf("bits %d, want %d", g.bits(), c.bits)
			}
		})
	}
}

// same is the bits of the three accountings where no index is sent.
func same(bits uint64) [3]uint64 { return [3]uint64{bits, bits, bits} }

func alone(g *game) { g.edges = func(int) [][2]int { return nil } }

func ringed(g *game) {
	g.edges = func(int) [][2]int { return [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}} }
	g.mask = func(int, int, int) []uint32 { return nil }
	g.fixed = func(int, int) float64 { return 1.0 / 3 }
}

// ringedEvery has all edges of the ring in the last iteration of each round of h.
func ringedEvery(h int) func(g *game) {
	return func(g *game) {
		ringed(g)
		atEnds(g, h)
	}
}

// atEnds leaves the edges of the last iteration of each round of h.
func atEnds(g *game, h int) {
	edges := g.edges
	g.edges = func(t int) [][2]int {
		if (t+1)%h != 0 {
			return nil
		}
		return edges(t)
	}
}

// everyPair has all pairs, without masks, in the last iteration of each round of 2.
func everyPair(g *game) {
	n := len(g.state)
	g.edges = func(int) [][2]int { return world{n: n}.complete() }
	g.mask = func(int, int, int) []uint32 { return nil }
	atEnds(g, 2)
}

// tournament pairs the agents at the end of round r of 2: the last with r mod (n-1), and (r+k) with
// (r-k) modulo n-1.
func tournament(g *game) {
	n := len(g.state)
	g.mask = func(int, int, int) []uint32 { return nil }
	g.edges = func(t int) (pairs [][2]int) {
		if t%2 == 0 {
			return nil
		}
		m, r := n-1, t/2
		pairs = append(pairs, [2]int{r % m, m})
		for k := 1; k <= (n-2)/2; k++ {
			i, j := (r+k)%m, (r-k%m+m)%m
			pairs = append(pairs, [2]int{min(i, j), max(i, j)})
		}
		return pairs
	}
}

func halfLazy(g *game) {
	ringed(g)
	g.fixed = func(int, int) float64 { return 1.0 / 6 }
}

func withL2(g *game) {
	alone(g)
	plain := g.grad
	g.grad = func(t, i int, dst, x []float64) {
		plain(t, i, dst, x)
		for k := range dst {
			dst[k] += 0.01 * x[k]
		}
	}
}

// clipped limits the norm of gradients to 1.
func clipped(g *game) {
	plain := g.grad
	g.grad = func(t, i int, dst, x []float64) {
		plain(t, i, dst, x)
		by := math.Min(1, 1/(distance(dst, make([]float64, len(dst)))+1e-6))
		for k := range dst {
			dst[k] *= by
		}
	}
}

// With exact gradients, local momentum enlarges the bias of DSGD, averaged momentum and that of
// DecentLaM and plain QG hardly do, and D² and gradient tracking have none. The bias is the largest
// error of a coordinate.
func TestMomentumBias(t *testing.T) {
	for _, c := range []struct {
		algo Algorithm
		want float64
	}{
		{DSGD{Metropolis: true, ATC: true}, 0.16},
		{DSGD{Metropolis: true, ATC: true, Descent: heavyBall(0.5)}, 0.31},
		{DmSGD{Mu: 0.5}, 0.167},
		{QG{Mu: 0.5}, 0.16},
		{QG{Mu: 0.5, Nesterov: true}, 0.23},
		{DecentLaM{Mu: 0.5}, 0.16},
		{DecentLaM{Mu: 0.9}, 0.16},
		{LED{Tau: 1}, 0},
		{LED{Tau: 1, Descent: heavyBall(0.5)}, 0},
		{NEXT{Descent: Descent{Opt: HeavyBall{0.5}, Corrected: true}}, 0},
		{DIGing{Descent: heavyBall(0.5)}, 0},
	} {
		g := goldenGame(c.algo)
		ringed(g)
		far := alternatingError(t, g)
		if math.Abs(far-c.want) > 0.005 || c.want == 0 && far > 1e-12 {
			t.Errorf("%s %+v ends %.4g from the optimum, want %.2g", c.algo.Name(), c.algo, far, c.want)
		}
	}
}

// alternatingError is the goldenError after 2000 iterations with exact gradients whose lengths
// alternate.
func alternatingError(t *testing.T, g *game) float64 {
	exact := g.grad
	g.grad = func(t, i int, dst, x []float64) {
		exact(t, i, dst, x)
		for k := range dst {
			dst[k] /= 1 + 0.1*sign(t)
		}
	}
	for it := range 2000 {
		g.step(t, it)
	}
	return goldenError(g)
}

// goldenError is the largest error of a coordinate of an agent in a golden game.
func goldenError(g *game) (far float64) {
	best := make([]float64, 3)
	for k := range best {
		num, den := 0.0, 0.0
		for i := range 4 {
			h := 1 + float64((i+2*k)%3)/2
			num, den = num+h*(float64(i+1)-0.5*float64(k)*sign(i)), den+h
		}
		best[k] = num / den
	}
	for i := range 4 {
		for k, v := range g.x(i) {
			far = max(far, math.Abs(v-best[k]))
		}
	}
	return far
}

// The directions are those of PyTorch in float64, over a hundred steps on a quadratic.
func TestPyTorchOptimizers(t *testing.T) {
	text, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct {
		Name  string
		Decay float64
		X     [][]float64 // the parameters after 1, 2, 10 and 100 steps
	}
	if err := json.Unmarshal(text, &runs); err != nil {
		t.Fatal(err)
	}
	optimizers := map[string]Optimizer{"sgd": Plain{}, "heavy-ball": HeavyBall{0.9}, "nesterov": Nesterov{0.9},
		"adamw": AdamW{0.9, 0.999, 1e-8}}
	for _, run := range runs {
		coupled := run.Name != "adamw"
		d := Descent{Opt: optimizers[run.Name]}
		if !coupled {
			d.Decay = &Decay{Rate: run.Decay}
		}
		g := newGame(DSGD{Descent: d}, 1, []float64{2, -1, 0.5, 3})
		alone(g)
		g.alpha = 0.05
		g.grad = func(t, _ int, dst, x []float64) {
			for k := range dst {
				dst[k] = (0.5 + 0.25*float64(k)) * (x[k] - float64(k-1)) * (1 + 0.5*float64(t%3))
				if coupled {
					dst[k] += run.Decay * x[k]
				}
			}
		}
		at := 0
		for it := range 100 {
			g.step(t, it)
			if it != 0 && it != 1 && it != 9 && it != 99 {
				continue
			}
			for k, want := range run.X[at] {
				if got := g.x(0)[k]; math.Abs(got-want) > 1e-13*max(1, math.Abs(want)) {
					t.Errorf("%s: x[%d] after %d steps is %v, in PyTorch %v", run.Name, k, it+1, got, want)
				}
			}
			at++
		}
	}
}

// The count of AdamW is that of its calls, not the iteration: agents of blocking pairs rest while
// others move.
func TestAdamWCountsItsCalls(t *testing.T) {
	g := newGame(Swarm{Blocking: true, Steps: 1, Descent: adamW(false)}, 3, make([]float64, 2))
	w := world{graph: [][2]int{{0, 1}}, d: 2}
	s := rng.New(1, "quadratics")
	g.grad, g.edges = randomQuadratics(&s, 3, 2).grad, w.edges
	pairs(g, world{graph: [][2]int{{0, 1}}, n: 3, d: 2})
	g.alpha = 0.1
	for it := range 5 {
		g.step(t, it)
	}
	if g.state[0].Count != 5 || g.state[2].Count != 0 {
		t.Errorf("counts %d and %d after five steps of the first agent and none of the last", g.state[0].Count,
			g.state[2].Count)
	}
	if distance(g.x(2), make([]float64, 2)) != 0 {
		t.Error("the agent without steps has moved")
	}
}

// With heterogeneous agents AdamW inside the correction comes ten times as near to the optimum as
// outside of it: outside, the preconditioned gradients balance.
func TestAdamWCorrected(t *testing.T) {
	w := world{seed: 5, n: 6, d: 4, k: 2, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {0, 5}}}
	s := rng.New(5, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	away := func(corrected bool) float64 {
		const T, alpha = 8000, 0.01
		d := Descent{Opt: AdamW{0.9, 0.999, 1e-8}, Corrected: corrected}
		g := w.play(SA{Gamma: 0.5, Beta: 1, Descent: d}, q, alpha, 0)
		for it := range T {
			g.alpha = alpha / 2 * (1 + math.Cos(math.Pi*float64(it)/T))
			g.eta = 0.5 * g.alpha
			g.step(t, it)
		}
		return distance(mean(w.n, g.x), q.optimum())
	}
	outside, inside := away(false), away(true)
	t.Logf("%.3g and %.3g from the optimum", outside, inside)
	if !(inside < outside/10) {
		t.Errorf("AdamW in the correction ends %g from the optimum, outside of it %g", inside, outside)
	}
}

// Decoupled decay leaves excepted coordinates alone, to the bit where their gradient is zero.
func TestDecayExcept(t *testing.T) {
	for _, o := range []Optimizer{Plain{}, HeavyBall{0.9}, Nesterov{0.9}, AdamW{0.9, 0.99, 1e-8}} {
		t.Run(fmt.Sprintf("%T", o), func(t *testing.T) {
			dev := devicetest.NewFloat64()
			x := dev.NewVector(3)
			copy(values(x), []float64{1, 2, 3})
			a := DSGD{Descent: Descent{Opt: o, Decay: someDecay}}
			s := NewState(a, dev, x)
			r := &Round{Alpha: 0.1, Acquire: dev.NewVector, Grad: func(dst, _ device.Vector) error {
				clear(values(dst))
				return nil
			}}
			if err := a.Local(s, r); err != nil {
				t.Fatal(err)
			}
			if got := values(s.X); got[1] != 2 || math.Abs(got[0]-0.999) > 1e-15 || math.Abs(got[2]-2.997) > 1e-15 {
				t.Errorf("x = %v, want 0.999, 2 and 2.997", got)
			}
		})
	}
}
