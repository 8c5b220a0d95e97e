package config

import (
	"fmt"
	"math"
	"strconv"

	"fspda/dist"
	"fspda/train/algo"
)

// gossipStable checks a gossip gain and, for FSPDA, the product of the dual gains.
//
// A Laplacian eigenvalue l of a static unmasked graph gives FSPDA-SA's consensus mode the
// characteristic polynomial z² - (2-gamma·l)z + (1-gamma·l+eta·beta·l). Its roots lie inside the
// unit circle iff 0 < eta·beta < gamma and gamma·l < 2 + eta·beta·l/2. One active edge is such a
// graph with l = 2.
func (s *Setup) gossipStable(key string, gain, dual float64) (warnings []string, err error) {
	c := s.Config
	if s.Graph.N == 1 || len(s.Graph.Edges) == 0 {
		return nil, nil
	}
	if !(gain > 0) {
		return nil, Invalid(key, gain, "must be above 0, or agents never move towards each other; 0.5 averages a pair")
	}
	if s.method.Dual {
		if dual >= gain {
			return nil, Invalid("eta", c.Eta, "times beta %v is %v and reaches gamma %v: the duals would overshoot "+
				"and diverge; lower eta, or use eta auto", c.Beta, dual, gain)
		}
		if dual == 0 {
			warnings = append(warnings, "eta·beta is 0: the duals do nothing, and agents with different data keep a "+
				"bias as in DSGD")
		}
	}
	if unstable(gain, dual, 2) {
		return nil, Invalid(key, gain, "is outside the stable region of one active edge, %s < %.4g: each exchange "+
			"would widen the gap it should close; 0.5 averages a pair", key, 1+dual/2)
	}
	static, meeting := s.activeEdges()
	if static && s.Mask.Dense() {
		if l := s.Graph.LargestEigenvalue(); unstable(gain, dual, l) {
			return nil, Invalid(key, gain, "is outside the stable region of graph %s with all edges at once and all "+
				"coordinates, %s < %.4g (2/%.4g + eta·beta/2): lower it, or use edges one-edge, or a mask", c.Graph,
				key, 2/l+dual/2, l)
		}
	}
	degree := float64(meeting)
	if load := degree * s.Mask.Density(); gain*degree >= 1 && load > 1 {
		warnings = append(
			warnings,
			fmt.Sprintf("%s·(most active edges at an agent, %d) is %.3g and about %.2g edges meet at "+
				"an agent and coordinate at once: the gossip may diverge; a safe value is below %.3g",
				key, meeting, gain*degree, load, 1/degree),
		)
	}
	return warnings, nil
}

// maxSpectrum is the largest number of agents for which all eigenvalues of a mixing matrix are
// computed: they take the cube of it in time.
const maxSpectrum = 1500

func unstable(gain, dual, l float64) bool { return gain*l >= 2+dual*l/2 }

// activeEdges looks at iterations of the edge process. static reports whether all edges are active
// whenever one is, and meeting is the largest number of active edges at an agent. It looks at 64
// iterations with active edges, fewer on graphs of very many edges, and searches as long as a process
// of the smallest rates may need for the first.
func (s *Setup) activeEdges() (static bool, meeting int) {
	edges := len(s.Graph.Edges)
	looks := min(64, max(8, maxLooked/edges))
	degree := make([]int, s.Graph.N)
	var active []dist.Event
	static = true
	for t, found := 0, 0; found < looks && t < 64*looks; t++ {
		if active = s.Process.Active(active, t); len(active) == 0 {
			continue
		}
		found++
		static = static && len(active) == edges
		clear(degree)
		for _, e := range active {
			degree[e.From]++
			degree[e.To]++
			meeting = max(meeting, degree[e.From], degree[e.To])
		}
	}
	if meeting == 0 { // none found: assume the worst
		return true, s.Graph.MaxDegree()
	}
	return static, meeting
}

// maxLooked limits the number of edges that activeEdges looks at.
const maxLooked = 1 << 22

// MaxEdgeRate returns the largest probability over the edges that an edge is active in an
// iteration.
func (s *Setup) MaxEdgeRate() float64 {
	m := 0.0
	for e := range s.Graph.Edges {
		m = math.Max(m, s.Process.Rate(e))
	}
	return m
}

func (s *Setup) minRate() float64 {
	if s.method.Edges == Clocks {
		return s.ContactShare()
	}
	m := math.Inf(1)
	for e := range s.Graph.Edges {
		m = math.Min(m, s.Process.Rate(e))
	}
	return m
}

// autoEta is the starting point eta·beta = gamma²·rho/4, with rho the smallest non-zero eigenvalue
// of the expected random Laplacian, lambda_2·P(edge)·k/d: critically damped mean dynamics.
func (s *Setup) autoEta() float64 {
	c := s.Config
	if s.Graph.N < 2 || c.Beta == 0 {
		return 0
	}
	share := s.Mask.Density()
	if sketched, ok := s.method.New(s).(algo.SketchedSA); ok {
		share = 1 / float64(sketched.MaxRank()) // one direction of each matrix
	}
	rho := s.Graph.Connectivity() * s.minRate() * share
	return sixDigits(c.Gamma * c.Gamma * rho / (4 * c.Beta))
}

// sixDigits rounds to six significant digits. The last bits of an eigenvalue depend on the
// processor; a resolved configuration must not.
func sixDigits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		panic("train: a printed number does not read back: " + err.Error()) // cannot happen
	}
	return r
}
