package algo

import (
	"fmt"
	"testing"

	"fspda/device"
	"fspda/train/setting"
)

// goldenMuon is the Muon of the golden rows: 15 coordinates, of which a 2×3 and a 3×2 matrix are
// the first, with three without a matrix behind.
func goldenMuon(scale string, nesterov, corrected bool) Descent {
	s := Settings{Values: map[string]any{"mu": 0.9, "nesterov": nesterov, "scale": scale, "beta1": 0.9, "beta2": 0.99,
		"eps": 1e-8, "alpha_rest": setting.AutoFloat{V: 0.03}, "muon_tensors": "auto"}, Alpha: 0.1,
		Tensors: []Tensor{{Rows: 2, Cols: 3, Hidden: true}, {Offset: 6, Rows: 3, Cols: 2, Hidden: true},
			{Offset: 12, Rows: 3}}}
	return Descent{Opt: newMuon(s), Corrected: corrected, Decay: &Decay{Rate: 0.01}}
}

// muonGames returns golden problems with d coordinates, for four, five and six agents.
func muonGames(a Algorithm, d int) (games [3]*game, objectives [3]func(x []float64) float64) {
	for p, q := range [3]quadratics{goldenQuadratics(d), fiveQuadratics(d), sixQuadratics(d)} {
		start := make([]float64, d)
		for k := range start {
			start[k] = 2
		}
		g := newGame(a, len(q.h), start)
		g.alpha, g.eta = 0.1, 0.05
		objectives[p] = func(x []float64) (f float64) {
			for i := range q.h {
				for k, v := range x {
					f += q.h[i][k] * (v - q.b[i][k]) * (v - q.b[i][k]) / float64(2*len(q.h))
				}
			}
			return f
		}
		q.factor = func(t int) float64 { return 1 + 0.1*sign(t) }
		g.grad, games[p] = q.grad, g
	}
	return games, objectives
}

// fiveQuadratics are the functions of the golden problem of five agents, with factor 1.
func fiveQuadratics(d int) (q quadratics) {
	for i := range 5 {
		var h, b []float64
		for k := range d {
			h = append(h, 1+float64((2*i+3*k)%5)/4)
			b = append(b, float64((3*i+5*k)%7)-3+float64(k)/4)
		}
		q.h, q.b = append(q.h, h), append(q.b, b)
	}
	return q
}

// sixQuadratics are the functions of the golden problem of six agents, with factor 1.
func sixQuadratics(d int) (q quadratics) {
	for i := range 6 {
		var h, b []float64
		for k := range d {
			h = append(h, 1+float64((3*i+k)%4)/3)
			b = append(b, float64((5*i+2*k)%9)/2-2+float64(k)/3)
		}
		q.h, q.b = append(q.h, h), append(q.b, b)
	}
	return q
}

// goldenSteps are the iterations of the golden problems, and goldenErrors the largest errors of
// their numbers, which have eight printed digits, and ten of the third problem.
var goldenSteps, goldenErrors = [3]int{6, 8, 11}, [3]float64{0.6e-8, 0.6e-8, 0.6e-10}

// ringEdges lists the edges of a ring of n agents.
func ringEdges(n int) (ring [][2]int) {
	for i := range n - 1 {
		ring = append(ring, [2]int{i, i + 1})
	}
	return append(ring, [2]int{0, n - 1})
}

// ringOf has all edges of the ring, with their Metropolis weights.
func ringOf(g *game) {
	g.edges = func(int) [][2]int { return ringEdges(len(g.state)) }
	g.fixed = func(int, int) float64 { return 1.0 / 3 }
}

// oneOfRing has the edges of the ring in turn.
func oneOfRing(g *game) {
	ringOf(g)
	ring := g.edges(0)
	g.edges = func(t int) [][2]int { return ring[t%len(ring):][:1] }
}

// Trajectories that another program computed in float64: coordinates 0, 6 and 12 of the model of
// agent 0, the objective at the mean model, and a vector of agent 0.
func TestGoldenMuon(t *testing.T) {
	for name, c := range map[string]struct {
		algo  Algorithm
		edges func(g *game)
		state func(s *State) device.Vector
		want  [3]string
	}{
		"alone, original": {DSGD{Descent: goldenMuon(originalScale, true, false)}, alone,
			func(s *State) device.Vector { return s.Opt[0] }, [3]string{"2.34657227 2.21777848 1.81776249 " +
				"248.89964657 0.53368115 1.90490325 3.22358105", "1.59990537 1.63337234 2.23257423 54.24406157",
				"1.4323479394 1.6982285306 2.3195485622 " +
					"34.0404120192 2.5599973763 0.3732927329 -1.9572203732"}},
		"alone, match_rms_adamw": {DSGD{Descent: goldenMuon(matchAdamW, true, false)}, alone,
			func(s *State) device.Vector { return s.Opt[0] }, [3]string{"2.11319804 2.03932718 1.81776249 " +
				"249.14828758 0.49002616 1.87232842 3.22358105", "1.85043738 1.88500611 2.23257423 56.12870584",
				"1.7968319571 1.8904524392 2.3195485622 " +
					"37.7942505456 2.6952826361 0.5071504257 -1.9572203732"}},
		"alone, spectral_unclamped, no Nesterov": {DSGD{Descent: goldenMuon(spectralUnclamped, false, false)}, alone,
			func(s *State) device.Vector { return s.Opt[0] }, [3]string{"2.26593366 2.20701918 1.81776249 " +
				"248.90664660 0.52340474 1.90322405 3.22358105", "1.66965383 1.63330074 2.23257423 54.57823078",
				"1.5398579146 1.6912921813 2.3195485622 " +
					"34.5618794497 2.5995285022 0.3708728962 -1.9572203732"}},
		"fspda-sa, local": {SA{Gamma: 0.4, Beta: 1, Descent: goldenMuon(originalScale, true, false)}, oneOfRing,
			func(s *State) device.Vector { return s.Aux[0] }, [3]string{"2.06747157 2.15004578 1.95656464 " +
				"248.91178238 0.48302350 0.10467121 -0.29299774", "1.65244688 1.85888881 2.06512406 54.19300325",
				"1.4688461963 1.8547066187 2.3191600894 " +
					"34.0312022571 -0.0353662809 -0.2568889691 0.0006451485"}},
		"fspda-sa, corrected": {SA{Gamma: 0.4, Beta: 1, Descent: goldenMuon(originalScale, true, true)}, oneOfRing,
			func(s *State) device.Vector { return s.Aux[0] }, [3]string{"2.06311787 2.17610386 1.93731819 " +
				"248.90085322 0.49322452 0.09635258 -0.29898879", "1.63524016 1.81598063 2.09881293 54.23984527",
				"1.4536534132 1.7988780912 2.3192904824 " +
					"34.0483576843 -0.0536756175 -0.2663707003 0.0006451485"}},
		"dsgd, adapt-then-combine": {DSGD{Metropolis: true, ATC: true, Descent: goldenMuon(originalScale, true, false)},
			ringOf, nil, [3]string{"2.04512308 2.02030631 2.00380122 248.91123951",
				"1.73402662 1.84601001 2.02886817 54.23427067",
				"1.4048580389 1.7645048717 2.3185348638 " +
					"33.9666345014"}},
		"dsgt, semi-atc": {NEXT{Descent: goldenMuon(originalScale, true, true)}, ringOf,
			func(s *State) device.Vector { return s.Aux[0] }, [3]string{"2.24643424 2.01655166 1.99788407 " +
				"247.45107423 -1.54096284 -3.52989247 -5.37342663", "1.87738491 1.24498975 2.12657585 51.79557347",
				"1.4925495137 1.5627755169 2.3158201232 " +
					"33.7326624217 -1.4838547107 -0.3069170875 -0.2367728498"}},
		"muloco": {DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Descent: goldenMuon(spectralUnclamped, false, false)}, everyPair,
			func(s *State) device.Vector { return s.Aux[len(s.Aux)-3] }, [3]string{"2.12924321 2.00145879 1.99325591 " +
				" 248.78471102 -0.06339264 -0.00119224 0.00324210", "1.58190815 1.72084076 2.15391704 51.65753666",
				"0.8963558465 1.5025046778 2.7093954606 " +
					"27.2853785240 0.3678765221 0.1599253274 -0.2353104759"}},
	} {
		games, objectives := muonGames(c.algo, 15)
		for p, g := range games {
			c.edges(g)
			for it := range goldenSteps[p] {
				g.step(t, it)
			}
			mean := make([]float64, 15)
			for i := range g.state {
				for k, v := range g.x(i) {
					mean[k] += v / float64(len(g.state))
				}
			}
			x := g.x(0)
			got := []float64{x[0], x[6], x[12], objectives[p](mean)}
			if p != 1 && c.state != nil {
				v := values(c.state(g.state[0]))
				got = append(got, v[0], v[6], v[12])
			}
			t.Run(fmt.Sprint(name, ", problem ", p), func(t *testing.T) { compare(t, p, got, c.want[p]) })
		}
	}
}
