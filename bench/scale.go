package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"fspda/dist"
	"fspda/train"
)

// Scale shortens the runs of a figure.
//
// Share s runs s·T of T iterations. Algorithms with rounds can only be evaluated between rounds;
// their number of rounds is the nearest that their evaluations divide. The number of evaluations is
// the figure's, but at most one per 400 iterations (and at least ten). A warm-up is shortened with
// the run, of which it keeps its share. Local steps, coins, broadcast probabilities and masks, and
// so the bits of an iteration, are unchanged.
//
// Networks other than the MLP are evaluated on the test set, which costs as much at any length of
// the run. In a shortened run an evaluation scores each model on at most three times as many test
// examples as an agent trains on between two evaluations, and at least 100: scoring takes a third
// of the work of a gradient. Batch norms are recalibrated on at most one batch for each gradient
// between two evaluations.
//
// Retune preserves the shape of the figure by scaling two further quantities.
//
// 1. The distance that the models move, which is the sum of all steps, alpha·T. Let m = min(1/s,
// 0.05·(1-mu)/alpha), at least 1. The effective step alpha/(1-mu) is then at most 0.05, below which
// the network of the MNIST figures trains stably:
//
//	alpha → m·alpha
//	eta   → the largest of three values, whose limits are for eta·beta:
//	                    m·eta, up to ten times critical damping gamma²·rho/4, and up to gamma²
//	                    times the rate at which an agent exchanges a coordinate: alpha/eta stays.
//	                    Above, random exchanges make the duals grow: with gamma 1/2 and ten agents
//	                    from 1.1 times this rate on, both on the ring and on the complete graph;
//	                    eta/s, up to critical damping: below it the duals converge at the rate
//	                    eta·beta/gamma, so the run has as many of their time constants as before;
//	                    eta itself.
//	theta → m·theta     at most 0.5 (dsgd), or half of the stable limit (choco)
//	a_x   → a_x·m^(2/3), a_lambda → a_lambda·m^(1/3)
//	                    at most 1: the rates at which STORM's weights depend on T
//	lattice(s,q) → lattice(√m·s,q)
//	                    rounding errors add up like the steps of a random walk; the bits stay
//
// 2. The time that the agents have to reach consensus. Methods with a correction need 1/p²
// iterations at an exchange probability p (Mishchenko et al., ProxSkip, 2022), so a run has p²·T
// such periods. To preserve that number, all runs exchange c = √(1/s) times as many bits per
// iteration, and each algorithm keeps its share of the bits of the figure:
//
//	density → c·density                  of masks and of compressors
//	local_steps → local_steps/c          rounded
//	coin(p), bernoulli(p) → c·p          where all coordinates are sent
//	one pair → a random maximal matching swarm, if c is at least 2: pairs are all it can have more of
//
// c is limited by the run of the figure with the least headroom. The bits of the whole figure
// become √s of the original.
//
// Rho is the smallest non-zero eigenvalue of the expected random Laplacian at the new density.
type Scale struct {
	Share  float64
	Retune bool
}

// maxEffectiveStep is the effective step size up to which Retune scales.
const maxEffectiveStep = 0.05

// minEvalInterval is the least number of iterations between evaluations of a shortened run.
const minEvalInterval = 400

// A shortened run scores at least minEvalTest examples. A limit of usualTest, the size of the test
// sets of MNIST and CIFAR-10, or more is none.
const (
	minEvalTest = 100
	usualTest   = 10_000
)

func (s Scale) check() error {
	if !(s.Share > 0 && s.Share <= 1) {
		return &train.ConfigError{Key: "scale", Got: fmt.Sprint(s.Share),
			Want: "expected above 0 and at most 1: the share of the figure's iterations"}
	}
	if s.Retune && s.Share == 1 {
		return &train.ConfigError{Key: "retune", Want: "changes nothing without a scale below 1: set scale, or leave " +
			"retune out"}
	}
	return nil
}

// Caption describes the scaling for a figure.
func (s Scale) Caption() []string {
	if s.Share == 1 {
		return []string{"All iterations of the figure, its own step sizes."}
	}
	lines := []string{fmt.Sprintf("Scale %g: that share of the figure's iterations, rounded to whole rounds for "+
		"algorithms with local steps.", s.Share)}
	if !s.Retune {
		return append(lines, "Not retuned: the figure's own step sizes, so that the curves are the beginning of "+
			"those of the figure.")
	}
	return append(lines, fmt.Sprintf("Retuned: steps times m = min(%.4g, %g(1−mu)/alpha): alpha and eta (eta·beta up "+
		"to ten times critical damping, or to gamma² times an agent's rate of exchange; or eta/scale up to critical "+
		"damping, if larger), theta up to half of its stable limit; a_x times m^(2/3), a_lambda times m^(1/3), a "+
		"lattice's side times √m.", 1/s.Share, maxEffectiveStep),
		fmt.Sprintf("Exchanges times c = √(1/scale) = %.3g for all, unless one of the figure's runs cannot: density "+
			"and probabilities times c, local steps divided by c, a matching instead of one pair for Swarm-SGD.",
			math.Sqrt(1/s.Share)))
}

// apply shortens a run. points, if above 0, is the number of evaluations; limit is the largest
// factor by which all runs of the figure can increase their exchanges.
func (s Scale) apply(c train.Config, points int, limit float64) (train.Config, error) {
	if points < 0 {
		return c, &train.ConfigError{Key: "--eval-points", Got: strconv.Itoa(points), Want: "expected 1 or more, or " +
			"0 for those of the file"}
	}
	if s.Share < 1 {
		c.Iterations = max(1, int(math.Round(s.Share*float64(c.Iterations))))
		c.Warmup = digits(s.Share * c.Warmup)
		c.WarmupT = int(math.Round(s.Share * float64(c.WarmupT)))
		c.DecayT = int(math.Round(s.Share * float64(c.DecayT)))
		c.EvalPoints = max(1, min(c.EvalPoints, max(10, c.Iterations/minEvalInterval)))
	}
	if points > 0 {
		c.EvalPoints = points
	}
	c.EvalPoints = min(c.EvalPoints, c.Iterations)
	if s.Share < 1 && c.Model != "mlp" {
		limitEvaluations(&c)
	}
	var err error
	if s.Share < 1 && s.Retune {
		scaleExchange(&c, math.Min(math.Sqrt(1/s.Share), limit))
		err = retune(&c, 1/s.Share)
	}
	if steps := c.RoundSteps(); steps > 0 {
		c.Iterations, c.EvalPoints = wholeRounds(c.Iterations, c.EvalPoints, steps)
	}
	return c, err
}

// limitEvaluations makes an evaluation of a large network cost about as much as the training since
// the one before, at most.
func limitEvaluations(c *train.Config) {
	interval := c.Iterations / c.EvalPoints
	if most := max(minEvalTest, 3*interval*c.Batch); c.EvalTest+c.EvalRandom == 0 && most < usualTest {
		c.EvalTest = most
	}
	c.BNBatches = min(c.BNBatches, interval*c.Agents)
}

// maxFactor returns the factor by which a run can increase the bits that it exchanges.
func maxFactor(c train.Config) float64 {
	name, p := probability(c.Edges)
	switch {
	case c.Algo == "swarm":
		return math.Inf(1)
	case c.LocalSteps > 0:
		return float64(c.LocalSteps)
	case c.Density < 1:
		return 1 / c.Density
	case name != "":
		return 1 / p
	}
	return 1
}

// scaleExchange multiplies the bits that a run exchanges per iteration.
func scaleExchange(c *train.Config, times float64) {
	name, p := probability(c.Edges)
	switch {
	case c.Algo == "swarm":
		if times >= 2 {
			c.Edges = "matching"
		}
	case c.LocalSteps > 0:
		c.LocalSteps = max(1, int(math.Round(float64(c.LocalSteps)/times)))
	case c.Density < 1:
		c.Density = math.Min(1, digits(c.Density*times))
	case name != "":
		c.Edges = fmt.Sprintf("%s(%v)", name, math.Min(1, digits(p*times)))
	}
}

// probability parses coin(p) and bernoulli(p); the name is empty for other edge processes.
func probability(edges string) (name string, p float64) {
	for _, name := range []string{"coin", "bernoulli"} {
		if arg, ok := strings.CutPrefix(edges, name+"("); ok {
			if p, err := strconv.ParseFloat(strings.TrimSuffix(arg, ")"), 64); err == nil && p > 0 {
				return name, p
			}
		}
	}
	return "", 0
}

// wholeRounds returns a number of rounds near iterations/steps with a divisor near points. A
// relative error of the iterations counts five times as much as one of the evaluations.
func wholeRounds(iterations, points, steps int) (int, int) {
	want := float64(iterations) / float64(steps)
	best, rounds, divisor := math.Inf(1), 1, 1
	for r := max(1, int(0.9*want)); float64(r) <= 1.1*want+1; r++ {
		for p := max(1, points/2); p <= min(r, 2*points); p++ {
			if r%p != 0 {
				continue
			}
			if off := 5*math.Abs(float64(r)/want-1) + math.Abs(math.Log(float64(p)/float64(points))); off < best {
				best, rounds, divisor = off, r, p
			}
		}
	}
	return rounds * steps, divisor
}

// retune scales the step sizes of a run whose iterations represent stretch iterations each.
func retune(c *train.Config, stretch float64) error {
	m := math.Max(1, math.Min(stretch, maxEffectiveStep*(1-c.Momentum)/c.Alpha))
	c.Alpha = digits(m * c.Alpha)
	if c.Algo == "fspda-storm" {
		c.AX = digits(math.Min(1, c.AX*math.Pow(m, 2./3)))
		c.ALambda = digits(math.Min(1, c.ALambda*math.Cbrt(m)))
	}
	if arg, ok := strings.CutPrefix(c.Compress, "lattice("); ok {
		side, rest, _ := strings.Cut(arg, ",")
		var v float64
		if _, err := fmt.Sscan(side, &v); err != nil {
			return &train.ConfigError{Key: "compress", Got: c.Compress, Want: "expected lattice(s,q)"}
		}
		c.Compress = fmt.Sprintf("lattice(%v,%s", digits(math.Sqrt(m)*v), rest)
	}
	switch c.Algo {
	case "fspda-sa", "fspda-storm":
		return retuneEta(c, m, stretch)
	case "dsgd":
		c.Theta = train.AutoFloat{V: digits(math.Max(c.Theta.V, math.Min(0.5, m*c.Theta.V)))}
	case "choco":
		return retuneTheta(c, m)
	}
	return nil
}

// retuneEta keeps alpha/eta where the duals are stable, and the number of time constants of the
// duals in a run up to critical damping: the larger of the two.
func retuneEta(c *train.Config, m, stretch float64) error {
	g, p, err := graphOf(c)
	if err != nil || c.Eta.Auto {
		return err
	}
	rate := math.Inf(1) // rate of the rarest edge
	for e := range g.Edges {
		rate = math.Min(rate, p.Rate(e))
	}
	degree := g.N
	for i := range g.N {
		degree = min(degree, g.Degree(i))
	}
	critical := c.Gamma * c.Gamma * g.Spectrum()[1] * rate * c.Density / 4 / c.Beta
	stable := c.Gamma * c.Gamma * float64(degree) * rate * c.Density / c.Beta
	ratio, time := min(m*c.Eta.V, 10*critical, stable), min(stretch*c.Eta.V, critical)
	c.Eta = train.AutoFloat{V: digits(max(c.Eta.V, ratio, time))}
	return nil
}

// retuneTheta scales theta up to half of the limit 2·delta/(2-delta)/(1-lambda_min(W)), where delta
// is the share of an agent's coordinates that its neighbours receive per iteration.
func retuneTheta(c *train.Config, m float64) error {
	g, p, err := graphOf(c)
	if err != nil {
		return err
	}
	w, err := dist.ParseMixing(c.Mixing, g)
	if err != nil {
		return err
	}
	delta := c.Density * (1 - math.Sqrt(1-p.Rate(0))) // an edge is active if one of its ends broadcasts
	limit := 2 * delta / (2 - delta) / (1 - w.Spectrum()[0])
	c.Theta = train.AutoFloat{V: digits(math.Max(c.Theta.V, math.Min(m*c.Theta.V, limit/2)))}
	return nil
}

func graphOf(c *train.Config) (*dist.Graph, dist.Process, error) {
	g, err := dist.ParseGraph(c.Graph, c.Agents, c.Seed)
	if err != nil {
		return nil, nil, err
	}
	edges := c.Edges
	if edges == "auto" { // the algorithms that are retuned have these edges
		edges = "one-edge"
	}
	p, err := dist.ParseProcess(edges, g, c.Seed)
	return g, p, err
}

// digits rounds to four significant digits, so that configurations are readable and do not depend
// on the last bits of an eigenvalue. Unlike units.Round, which rounds the exact binary value, it
// takes a number within rounding of a tie up.
func digits(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	r, err := strconv.ParseFloat(fmt.Sprintf("%.4g", math.Round(v/unit)*unit), 64)
	if err != nil {
		return v
	}
	return r
}
