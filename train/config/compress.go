package config

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/setting"
)

// usualCompressor is the spec that compress auto comes to.
func usualCompressor(content dist.Content) Chosen {
	first := dist.CompressorsThat(func(k dist.CompressorKind) bool { return k.Sends == content })[0]
	return Chosen(first.Usual())
}

// contractive lists the compressors of values that a method of public copies converges with
// whatever their arguments.
func contractive() string {
	return setting.Either(dist.FormsOf(dist.CompressorsThat(func(k dist.CompressorKind) bool {
		return k.Sends == dist.Values && !k.Unbiased && !k.NoDelta
	})))
}

// admitCompressor resolves compress auto, and refuses a compressor that the method does not use.
func (s *Setup) admitCompressor() error {
	c, m := &s.Config, s.method
	kind, known := dist.CompressorNamed(string(c.Compress))
	switch {
	case s.Traits.Code == algo.CompressedCode:
		return s.admitChoco(kind, known)
	case s.Traits.Code == algo.LatticeCode:
		if c.Compress == "" {
			c.Compress = uncompressed
		} else if c.Compress != uncompressed && kind.Sends != dist.Codes {
			return Invalid("compress", c.Compress, "%s decodes what it hears near its own model, which only a lattice "+
				"can: use lattice(s,q), such as lattice(0.0001,256), or identity; choco takes the others", m.Name)
		}
		return nil
	case c.Compress == "" || c.Compress == uncompressed:
		c.Compress = uncompressed
		return nil
	case s.Traits.Masks:
		return Invalid("compress", c.Compress, "%s compares its values with its neighbour's on coordinates that "+
			"both know beforehand: say with mask and density which; choco takes compressors, swarm a lattice", m.Name)
	}
	return Invalid("compress", c.Compress,
		"%s sends whole vectors: use compress identity; choco takes compressors, swarm a lattice", m.Name)
}

// uncompressed is the value of compress with which vectors travel as they are.
const uncompressed = "identity"

// admitChoco resolves compress auto. It refuses a mask with a compressor that sends every
// coordinate, and one of other coordinates than topk chooses.
func (s *Setup) admitChoco(kind dist.CompressorKind, known bool) error {
	c := &s.Config
	if c.Compress == "" {
		c.Compress = usualCompressor(dist.Values)
		return nil
	}
	switch {
	case !known: // refused by ParseCompressor
		return nil
	case kind.Sends == dist.Codes:
		return Invalid("compress", c.Compress, "%s adds up what it hears, and a lattice means something only near the "+
			"receiver's own model: use %s; swarm takes a lattice", s.method.Name, contractive())
	case kind.Sends == dist.Coefficients:
		return Invalid("compress", c.Compress, "sends coefficients, which only %s transforms back: use %s",
			setting.Either(withFeature(func(m method) bool { return m.traits.Code == algo.CoefficientCode })),
			contractive())
	case c.ReferenceBits == "published" && kind.Published == nil:
		return Invalid("reference_bits", c.ReferenceBits, "the released program has no compress %s, so that it "+
			"has no count of its bits: use reference_bits honest, or compress randk, topk or qsgd(s)", kind.Name)
	}
	switch kind.Mask {
	case dist.MaskDrawn:
		return nil
	case dist.MaskCounted: // randk and stratified are what auto stands for
		if slices.Contains([]string{"bernoulli", "block", "cycle", "parts"}, string(c.Mask)) {
			return Invalid("mask", c.Mask, "plays no part beside compress %s, which sends the largest coordinates: "+
				"use mask auto, or randk-per-layer for the largest of each tensor, or compress randk", kind.Name)
		}
		return nil
	}
	if c.Mask != "" && c.Mask != "all" {
		return Invalid("mask", c.Mask, "plays no part beside compress %s, which sends something of every "+
			"coordinate: use mask auto, or compress randk", c.Compress)
	}
	if c.Density != 1 && c.Density != Default().Density {
		return Invalid("density", c.Density, "plays no part beside compress %s, which sends something of every "+
			"coordinate: set density 1, or compress randk", c.Compress)
	}
	c.Mask, c.Density = "all", 1
	return nil
}

// admitTransform resolves compress auto of an algorithm that sends coefficients.
func (s *Setup) admitTransform() error {
	c := &s.Config
	if s.Traits.Code != algo.CoefficientCode {
		return nil
	}
	if c.Compress == "" {
		c.Compress = usualCompressor(dist.Coefficients)
	}
	if kind, ok := dist.CompressorNamed(string(c.Compress)); !ok || kind.Sends != dist.Coefficients {
		return Invalid("compress", c.Compress, "%s sends coefficients of a cosine transform: use dct(side,k), such as "+
			"dct(64,32)", s.method.Name)
	}
	return nil
}

// compress makes the compressor of an algorithm that broadcasts, or the lattice of one of pairs.
func (s *Setup) compress(sizes []int) (err error) {
	c := &s.Config
	switch s.Traits.Code {
	case algo.CompressedCode, algo.CoefficientCode:
		o := dist.CompressorOptions{Mask: s.Mask, Sizes: sizes, Flat: c.Norms == "flat", Seed: c.Seed}
		for _, b := range s.Tensors {
			o.Shapes = append(o.Shapes, [2]int{b.Rows, b.Cols})
		}
		own := s.Traits.Compressor
		if s.Compressor, err = dist.ParseCompressor(cmp.Or(own, string(c.Compress)), o); err != nil {
			return &Error{Key: "compress", Err: err}
		}
		if own == "" {
			c.Compress = Chosen(s.Compressor.String())
		}
	case algo.LatticeCode:
		if s.Lattice, err = dist.ParseLattice(string(c.Compress), c.Seed); err != nil {
			return &Error{Key: "compress", Err: err}
		}
		c.Compress = Chosen(s.Lattice.String())
		return s.admitPairs()
	}
	return nil
}

// admitPairs refuses local steps of nonblocking swarm, and traces in which an agent has several
// edges in one iteration.
func (s *Setup) admitPairs() error {
	c := &s.Config
	if !s.Traits.StepsPerExchange && c.LocalSteps > 1 {
		return Invalid("local_steps", c.LocalSteps,
			"non-blocking swarm takes one step in every iteration: set local_steps 0, or swarm blocking")
	}
	if !strings.HasPrefix(string(c.Edges), "trace(") {
		return nil
	}
	var events []dist.Event
	busy := make([]int, s.Graph.N) // each agent's last iteration with an edge, plus 1; 0: none
	for t := range c.Iterations {
		events = s.Process.Active(events, t)
		for _, e := range events {
			for _, i := range [2]int{e.From, e.To} {
				if busy[i] == t+1 {
					return Invalid("edges", c.Edges, "gives agent %d two edges in iteration %d; %s averages in "+
						"pairs: leave one of them out", i, t, c.Algo)
				}
				busy[i] = t + 1
			}
		}
	}
	return nil
}

// BatchPerGradient reports whether an agent takes a batch for each gradient, and none in iterations
// without a gradient.
func (s *Setup) BatchPerGradient() bool {
	return s.Asynchronous() || s.Traits.StepsPerExchange
}

// Broadcasts reports whether compressed vectors go to all neighbours of an agent, or to all agents,
// whether they send or not.
func (s *Setup) Broadcasts() bool { return s.Compressor != nil && s.Traits.Edges.Announces }

// BroadcastRate returns the probability that an agent broadcasts in an iteration.
func (s *Setup) BroadcastRate() float64 {
	if len(s.Graph.Edges) == 0 {
		return 1
	}
	if s.Process.Broadcasts() {
		return s.Process.SendRate()
	}
	return s.Process.Rate(0)
}

// chocoLimit returns the consensus step above which the differences between CHOCO's models may
// grow. Let each coordinate be received with probability delta. Between two messages, K iterations
// apart, xhat is constant and x moves by K·theta·mu of it, mu an eigenvalue of I-W. The mean square
// shrinks iff E(1-theta·mu·K)² < 1, which for geometric K is theta·mu < 2·delta/(2-delta). This
// holds if all agents draw the same coordinates. If they draw independently, the limit is up to
// twice as high, on two agents and on rings, and a few percent higher on large complete graphs.
func (s *Setup) chocoLimit() float64 {
	delta := float64(s.Compressor.Delta() * s.BroadcastRate())
	mu := 1 - s.Mixing.Spectrum()[0]
	return 2 * delta / (2 - delta) / mu
}

// copyLimit returns the gossip gain above which differences between agents may grow if both ends of
// an edge compare copies: a message removes a share delta of the squared distance of a copy. It
// was measured on graphs of ten agents; top-k of usual vectors bears four times as much, since its
// delta is the contraction of the worst vector.
func (s *Setup) copyLimit() float64 {
	delta := s.Compressor.Delta()
	return sixDigits(s.usualTimes() * delta / (2 - delta))
}

// usualTimes is how many times as much as the worst vector a usual one is contracted by, at least.
func (s *Setup) usualTimes() float64 {
	if kind, _ := dist.CompressorNamed(s.Compressor.String()); kind.WorstDelta {
		return 4
	}
	return 1
}

// copyRate bounds eta·beta/(gamma·P(edge)) over compressed copies. A copy that moves by a share r
// of its distance whenever its edge is active lags behind its model, so that the mean of
// differences between agents shrinks only if that ratio is below r, whatever the graph: the roots
// of s³/(r·P) + s² + gamma·l·s + eta·beta·l, with l an eigenvalue of the mean Laplacian, have
// negative real parts iff it is. Half of delta keeps away from that. For a compressor whose delta
// is a mean, as sign, whose messages disturb also coordinates that are right, less was measured to
// be safe.
func (s *Setup) copyRate() float64 {
	delta := math.Min(1, s.usualTimes()*s.Compressor.Delta())
	if kind, _ := dist.CompressorNamed(s.Compressor.String()); kind.MeanDelta {
		return (1 - math.Sqrt(1-delta)) / 8
	}
	return delta / 2
}

// settleGamma makes gamma the usual gain over compressed copies, if it was not set.
func (s *Setup) settleGamma() {
	c := &s.Config
	if s.Traits.Code != algo.CompressedCode || !s.uses("gamma") || !s.bends("gamma") || s.Graph.N == 1 ||
		s.Compressor == nil || s.Compressor.Delta() <= 0 {
		return
	}
	usual := s.copyLimit()
	if s.usualTimes() > 1 {
		usual = sixDigits(usual / 2)
	}
	if usual < c.Gamma {
		s.bent("gamma", c.Gamma, usual, "is too large for compress %s, whose messages may remove only %.3g of what a "+
			"copy lacks", c.Compress, s.Compressor.Delta())
		c.Gamma = usual
	}
}

// movesAll reports whether an exchange moves all coordinates: copies are compared as a whole,
// whatever was sent.
func (s *Setup) movesAll() bool { return s.Traits.Code == algo.CompressedCode || s.Mask.Dense() }

// moved returns the share of the coordinates that an exchange moves.
func (s *Setup) moved() float64 {
	if s.movesAll() {
		return 1
	}
	return s.Mask.Density()
}

// settleTheta resolves theta auto.
func (s *Setup) settleTheta() {
	c := &s.Config
	switch {
	case !c.given.Theta.Auto:
	case s.Traits.Code != algo.CompressedCode:
		c.Theta = s.pairTheta()
	case s.Graph.N == 1 || s.Mixing == nil || s.Compressor == nil || s.Compressor.Delta() <= 0 ||
		s.BroadcastRate() == 0:
		c.Theta = 1
	default:
		c.Theta = sixDigits(math.Min(1, s.chocoLimit()/2))
	}
}

// pairTheta returns theta auto of a method whose agents average over edges: 0.5, with which a pair
// has its mean, or where all edges at once would not bear that, 1/(1 + the largest degree), which
// Metropolis weights are on graphs of equal degrees.
func (s *Setup) pairTheta() float64 {
	const mean = 0.5
	constant := s.uses("theta") && s.Config.Weights == weightsConstant
	if s.Graph.N == 1 || len(s.Graph.Edges) == 0 || !constant || !s.Mask.Dense() {
		return mean
	}
	static, meeting := s.activeEdges()
	if !static || !unstable(mean, 0, s.Graph.LargestEigenvalue()) {
		return mean
	}
	return sixDigits(1 / float64(1+meeting))
}

// settleRho resolves rho auto: it makes alpha the largest step 1/(2·rho·degree) of all agents.
func (s *Setup) settleRho() {
	c := &s.Config
	if !s.uses("rho") || !c.given.Rho.Auto || s.Graph.N == 1 {
		return
	}
	least := math.MaxInt
	for i := range s.Graph.N {
		least = min(least, s.Graph.Degree(i))
	}
	c.Rho = sixDigits(1 / (2 * c.Alpha * float64(least)))
}
