package config

import (
	"fmt"
	"math"
	"strconv"

	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/setting"
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
	if s.Traits.Dual {
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
	safe := sixDigits(1 / float64(1+meeting))
	if static && s.movesAll() {
		if l := s.Graph.LargestEigenvalue(); unstable(gain, dual, l) {
			return nil, setting.InsteadOf(key, gain, safe, "is outside the stable region of graph %s with all edges "+
				"at once and all coordinates, %s < %.4g (2/%.4g%s): lower it, or use edges one-edge%s%s", c.Graph, key,
				2/l+float64(dual/2), l, when(s.Traits.Dual, " + eta·beta/2"), when(s.Traits.Masks, ", or a mask"),
				when(s.uses("weights"), ", or weights metropolis"))
		}
	}
	if p := s.Process; p.Period() > 0 && s.movesAll() {
		if growth := s.cycleGrowth(p, gain, dual); growth > 1+1e-6 {
			return nil, setting.InsteadOf(key, gain, safe, "lets differences between agents grow %.3g times in each "+
				"cycle of the %d rounds of %s with all coordinates: below %.3g it is safe; or use a mask", growth,
				p.Period(), p, 1/float64(meeting))
		}
	}
	degree := float64(meeting)
	if load := degree * s.moved(); gain*degree >= 1 && load > 1 {
		warnings = append(warnings, fmt.Sprintf("%s·(most active edges at an agent, %d) is %.3g and about %.2g edges "+
			"meet at an agent and coordinate at once: the gossip may diverge; a safe value is below %.3g", key, meeting,
			gain*degree, load, 1/degree))
	}
	return warnings, nil
}

// cycleGrowth returns by how much differences between agents grow in a cycle of the process in the
// long run, with x ← x - gain·Lx - lambda and lambda ← lambda + dual·Lx in each round: the largest
// modulus of an eigenvalue of the product of all rounds, by power iteration.
func (s *Setup) cycleGrowth(p dist.Process, gain, dual float64) float64 {
	n := s.Graph.N
	x, lambda, lap := make([]float64, n), make([]float64, n), make([]float64, n)
	var events []dist.Event
	cycles := max(50, min(400, maxLooked/(len(s.Graph.Edges)*p.Period())))
	return math.Exp(growthRate(x, lambda, cycles, func(int) {
		for t := range p.Period() {
			clear(lap)
			events = p.Active(events, t)
			for _, e := range events {
				d := x[e.From] - x[e.To]
				lap[e.From] += d
				lap[e.To] -= d
			}
			for i, l := range lap {
				x[i] -= float64(gain*l) + lambda[i]
				lambda[i] += float64(dual * l)
			}
		}
	}))
}

// growthRate returns the logarithm of the factor by which (x, y) grows in a round in the long run,
// by power iteration with a linear step that changes both, without their means: -Inf if they become
// zero. It sets x to a start with a part of all differences; y is 0.
func growthRate(x, y []float64, rounds int, step func(round int)) float64 {
	for i := range x {
		x[i] = math.Sin(float64(1 + i*i))
	}
	logs := 0.0
	for r := range rounds {
		step(r)
		size := math.Hypot(centered(x), centered(y))
		if size < math.SmallestNonzeroFloat64 { // the agents agree exactly
			return math.Inf(-1)
		}
		for i := range x {
			x[i] /= size
			y[i] /= size
		}
		if r >= rounds/2 {
			logs += math.Log(size)
		}
	}
	return logs / float64(rounds-rounds/2)
}

// momentumStable refuses a momentum at which differences between agents grow. A pair that meets
// once goes on approaching for 1/(1-mu) rounds. It passes its mean if it does not meet again
// meanwhile.
func (s *Setup) momentumStable(key string, m algo.GossipMomentum) error {
	if s.Graph.N == 1 || len(s.Graph.Edges) == 0 || !s.momentumGrows(m) {
		return nil
	}
	trial := m
	trial.Mu = 0
	if s.momentumGrows(trial) {
		return setting.InsteadOf("gamma", s.Config.Gamma, sixDigits(s.Config.Gamma/2), "lets differences between "+
			"agents grow with edges %s on graph %s, also without momentum: some agents have "+
			"several edges at once; lower it, or use edges matching", s.Process, s.Config.Graph)
	}
	safe, grows := 0.0, m.Mu
	for range 6 {
		if trial.Mu = (safe + grows) / 2; s.momentumGrows(trial) {
			grows = trial.Mu
		} else {
			safe = trial.Mu
		}
	}
	return setting.InsteadOf(key, m.Mu, math.Floor(20*safe)/20, "lets differences between agents grow with edges %s "+
		"on graph %s: a pair that meets goes on for 1/(1-momentum) rounds and passes its mean; below %.2g it is safe%s",
		s.Process, s.Config.Graph, safe, when(s.Traits.Edges.Fits("full") && s.Config.Edges != "full",
			", or use edges full"))
}

// when is a part of a message that some configurations have.
func when(has bool, text string) string {
	if has {
		return text
	}
	return ""
}

// edgeWeight is the weight of an active edge in iteration t; degree counts the active edges of
// agents.
type edgeWeight func(e dist.Event, t int, degree []int) float64

// ownWeight is that of the edge process where it has weights, else the Metropolis weight of the
// active graph.
func (s *Setup) ownWeight() edgeWeight {
	if s.Process.Weighted() {
		return func(e dist.Event, t int, _ []int) float64 { return s.Process.Weight(e, t) }
	}
	return func(e dist.Event, _ int, degree []int) float64 {
		return 1 / float64(1+max(degree[e.From], degree[e.To]))
	}
}

// momentumGrows reports whether differences between agents grow in the long run without gradients.
func (s *Setup) momentumGrows(g algo.GossipMomentum) bool {
	weight := s.ownWeight()
	if g.Weight != 0 {
		weight = func(dist.Event, int, []int) float64 { return g.Weight }
	}
	n := s.Graph.N
	x, m, pull, degree := make([]float64, n), make([]float64, n), make([]float64, n), make([]int, n)
	var events []dist.Event
	rounds := max(20, min(max(4000, 100*n), 10*maxLooked/(n+len(s.Graph.Edges))))
	rate := growthRate(x, m, rounds, func(r int) {
		t := r*g.Steps + g.Steps - 1
		events = s.Process.Active(events, t)
		clear(degree)
		for _, e := range events {
			degree[e.From]++
			degree[e.To]++
		}
		clear(pull)
		ahead := g.Ahead(g.Mu)
		for _, e := range events {
			d := float64((x[e.From] - x[e.To] - float64(ahead*(m[e.From]-m[e.To]))) * weight(e, t, degree))
			pull[e.From] += d
			pull[e.To] -= d
		}
		for i := range x {
			x[i], m[i] = g.Move(g.Mu, x[i], m[i], pull[i])
		}
	})
	return rate*float64(rounds-rounds/2) > 3
}

// centered subtracts the mean, which rounding errors move, and returns the Euclidean norm.
func centered(v []float64) (norm float64) {
	mean := 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for i := range v {
		v[i] -= mean
		norm += float64(v[i] * v[i])
	}
	return math.Sqrt(norm)
}

// maxSpectrum is the largest number of agents for which all eigenvalues of a mixing matrix are
// computed: they take the cube of it in time.
const maxSpectrum = 1500

// unstable reports whether differences along an eigenvector of the Laplacian do not shrink. At the
// limit they change sign for ever; a computed eigenvalue may be a little smaller.
func unstable(gain, dual, l float64) bool { return gain*l >= (2+float64(dual*l/2))*(1-1e-9) }

// activeEdges looks at iterations of the edge process. static reports whether all edges are active
// whenever one is, and meeting is the largest number of active edges at an agent. It looks at 64
// iterations with active edges, fewer on graphs of very many edges, and searches as long as a
// process of the smallest rates may need for the first.
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

// LinksAtOnce estimates over how many links an agent communicates in an iteration: the mean of the
// agent with most neighbours, rounded up. Rates that were found by drawing may be a little too large,
// so that it is at most the most links that an agent had in the iterations looked at.
func (s *Setup) LinksAtOnce() int {
	mean := max(1, int(math.Ceil(float64(s.Graph.MaxDegree())*s.MaxEdgeRate())))
	if mean > 1 {
		_, most := s.activeEdges()
		mean = min(mean, most)
	}
	return mean
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
	if s.Asynchronous() {
		return s.ContactShare()
	}
	m := math.Inf(1)
	for e := range s.Graph.Edges {
		m = math.Min(m, s.Process.Rate(e))
	}
	return m
}

// autoEta is the starting point eta·beta = gamma²·rho/4, with rho the smallest non-zero eigenvalue
// of the expected random Laplacian, lambda_2·P(edge)·k/d: critically damped mean dynamics. With a
// fixed matrix it is theta² times the smallest eigenvalue of I - W that is not zero, over 4.
func (s *Setup) autoEta() float64 {
	c := s.Config
	if s.Graph.N < 2 || c.Beta == 0 {
		return 0
	}
	if s.Traits.Mixing { // the Laplacian is I - W
		spectrum := s.Mixing.Spectrum()
		return sixDigits(c.Theta * c.Theta * (1 - spectrum[len(spectrum)-2]) / (4 * c.Beta))
	}
	share := s.moved()
	if rank := s.Traits.Rank; rank > 0 {
		share = 1 / float64(rank) // one direction of each matrix
	}
	rate := c.Gamma * s.Graph.Connectivity() * share / 4
	if s.Traits.EdgesFromModel {
		rate = min(rate, s.copyRate())
	}
	return sixDigits(c.Gamma * s.minRate() * rate / c.Beta)
}

// sixDigits rounds to six significant digits. The last bits of an eigenvalue depend on the
// processor; a resolved configuration must not.
func sixDigits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		panic("config: a printed number does not read back: " + err.Error()) // cannot happen
	}
	return r
}
