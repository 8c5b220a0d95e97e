package algotest

import (
	"math"

	"fspda/device"
	"fspda/train/algo"
)

// Float32Bound is the largest allowed error of a model on a float32 device, relative to max(1,
// |x|). Six iterations have some dozens of roundings of numbers up to 3, of at most 2^-23 each.
const Float32Bound = 3e-6

// Golden is an algorithm and its models after six iterations from zero. The trajectories were
// computed in float64 by an independent program.
type Golden struct {
	Name   string
	X0, X2 [dim]float64 // the models of agents 0 and 2
	// the dual of agent 0, if the algorithm stores one named "lambda"; else zero
	Lambda [dim]float64

	algo algo.Algorithm
	play mode
}

// mode selects the active edges and coordinates.
type mode int

const (
	oneEdge   mode = iota // edge t mod 4 of the ring, two of three coordinates
	edgeFull              // edge t mod 4 of the ring, all coordinates
	allPairs              // every edge of the complete graph, two of three coordinates
	whole                 // the ring at once, all coordinates, weights 1/3
	alternate             // like whole, in every second iteration
)

// Goldens lists the algorithms.
func Goldens() []Golden {
	return []Golden{
		{"sgd", [3]float64{1.4983529991, 1.6382956081, 1.6099403829}, [3]float64{1.4983529991, 1.6382956081,
			1.6099403829}, [3]float64{}, algo.SGD{}, allPairs},
		{"fspda-sa", [3]float64{0.8739067667, 0.9965814894, 0.6415698643}, [3]float64{1.7869627688, 1.5072315628,
			1.4422643861},
			[3]float64{-0.9658870000, -1.8250436050, -1.6201259200}, algo.SA{Gamma: 0.4, Beta: 1}, oneEdge},
		{"fspda-sa mu 0.5", [3]float64{1.2734310503, 1.3083226417, 0.9983611123}, [3]float64{2.5911249856, 2.2967682465,
			2.0463952270}, [3]float64{-1.3593870000, -2.6347543550, -2.5211139200}, algo.SA{Gamma: 0.4, Beta: 1,
			Descent: algo.Descent{Opt: algo.HeavyBall{Mu: 0.5}}}, oneEdge},
		{"dsgd", [3]float64{0.7816645582, 0.8188398912, 0.5744174083}, [3]float64{1.8149942728, 1.5293143575,
			1.3231176153}, [3]float64{}, algo.DSGD{Theta: 0.4}, oneEdge},
		{"fspda-storm", [3]float64{0.9456147377, 1.1116967649, 0.4122600931}, [3]float64{2.0123561286, 1.4683659770,
			1.8818750496}, [3]float64{}, algo.STORM{Gamma: 0.4, Beta: 1, AX: 0.3, ALambda: 0.2}, oneEdge},
		{"diging", [3]float64{1.3362525055, 1.1978158556, 1.4008199896}, [3]float64{1.5359921358, 1.7462000798,
			1.7097384793}, [3]float64{}, algo.DIGing{}, edgeFull},
		{"next", [3]float64{1.5082227755, 1.6155244938, 1.5795316564}, [3]float64{1.4831095071, 1.6145806862,
			1.5807262191}, [3]float64{}, algo.NEXT{}, whole},
		{"extra", [3]float64{1.5887692960, 1.6525105499, 1.6543803204}, [3]float64{1.3942451665, 1.6361873781,
			1.6516321195}, [3]float64{}, algo.EXTRA{Delta: 0.5}, whole},
		{"kgt", [3]float64{1.4595596223, 1.5912648410, 1.5882004992}, [3]float64{1.5129638923, 1.6778052699,
			1.6581929010}, [3]float64{}, algo.KGT{K: 2, EtaS: 1}, alternate},
		{"led", [3]float64{1.4924459926, 1.6537448572, 1.6715033950}, [3]float64{1.4843726052, 1.7041830871,
			1.7131756464}, [3]float64{}, algo.LED{Tau: 2}, alternate},
		{"scaffnew", [3]float64{1.4924459926, 1.6537448572, 1.6715033950}, [3]float64{1.4843726052, 1.7041830871,
			1.7131756464}, [3]float64{}, algo.Scaffnew{P: 0.5, C: 1}, alternate},
		{"prox-gpda", [3]float64{1.7972850674, 1.9565530198, 1.9736290175}, [3]float64{1.6450847927, 1.9201303960,
			1.9444857556}, [3]float64{}, algo.ProxGPDA{Rho: 2}, whole},
		{"swarm", [3]float64{0.7243378448, 0.6996662585, 0.8578069967}, [3]float64{1.0237501029, 0.9694892990,
			1.0497242362}, [3]float64{}, algo.Swarm{Blocking: true, Steps: 1}, edgeFull},
	}
}

// Error runs the algorithm on a device and returns the largest error of the golden models, relative
// to max(1, |x|).
func (c Golden) Error(dev device.Device) (float64, error) {
	g := c.play.simulation()
	g.dev, g.algo = dev, c.algo
	g.begin()
	for t := range 6 {
		if err := g.step(t); err != nil {
			return 0, err
		}
	}
	far := max(maxError(g.read(g.state[0].X), c.X0), maxError(g.read(g.state[2].X), c.X2))
	if c.Lambda != [dim]float64{} {
		far = max(far, maxError(g.read(algo.Aux(c.algo, g.state[0], "lambda")), c.Lambda))
	}
	return far, nil
}

func maxError(got []float64, want [dim]float64) float64 {
	far := 0.0
	for k, w := range want {
		if d := math.Abs(got[k]-w) / max(1, math.Abs(w)); !(d <= far) { // true for NaN as well
			far = d
		}
	}
	return far
}

func (m mode) simulation() *simulation {
	g := &simulation{masked: m == oneEdge || m == allPairs, edges: func(t int) [][2]int { return ring[t%4 : t%4+1] }}
	switch m {
	case allPairs:
		g.edges = func(int) [][2]int { return [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}} }
	case whole:
		g.fixed, g.edges = 1.0/3, func(int) [][2]int { return ring }
	case alternate:
		g.fixed, g.edges = 1.0/3, func(t int) [][2]int {
			if t%2 == 0 {
				return nil
			}
			return ring
		}
	}
	return g
}
