package algo

import "fspda/train/setting"

// Method declares a method: how its algorithm is made, and of which settings. The traits of the
// algorithm say the rest.
type Method struct {
	// Name is the value of the key algo.
	Name string
	// Keys are the keys of the configuration that New and Check read and that not every method reads,
	// besides eta and mixing, which follow from the traits. Keys that a method does not read are
	// refused if they are set explicitly. A key that is declared elsewhere is here with its name alone.
	Keys []setting.Key
	// Params are further settings of this method, below the key params.
	Params []setting.Key
	// New makes the algorithm of its settings. It is called before the graph of a run is made too, for
	// the traits of the algorithm: these must not depend on the graph.
	New func(s Settings) Algorithm
	// Check refuses settings outside the stable region, and returns warnings. It may be nil.
	Check func(r Run) (warnings []string, err error)
}

// Run is a run whose graph, edges and exchanges are made, as the check of a method sees it.
type Run interface {
	// Settings are the settings of the algorithm, in which auto is resolved.
	Settings() Settings
	// Text returns the resolved value of a key.
	Text(key string) string
	// Edges returns the number of edges of the graph.
	Edges() int
	// EqualDegrees reports whether all agents have as many neighbours.
	EqualDegrees() bool
	// ValueBits returns the number of bits of a value in a message.
	ValueBits() int
	// LeastEigenvalue returns the least eigenvalue of the mixing matrix.
	LeastEigenvalue() float64
	// Contraction says what a public copy keeps of a vector: the share of its square by which a message
	// brings it nearer, that share of a mean iteration, and the consensus step size above which
	// differences between agents may grow.
	Contraction() Contraction
	// CheckGain checks a gossip gain, x ← x - gain·ΣD, and the product of the gains of a dual,
	// lambda ← lambda + beta·ΣD, x ← x - eta·lambda; 0 if there is none.
	CheckGain(key string, gain, dual float64) (warnings []string, err error)
	// CheckMomentum refuses a momentum at which differences between agents grow.
	CheckMomentum(key string, m GossipMomentum) error
	// LimitedCoefficients warns of agents that compute so rarely that c_max limits their coefficients.
	LimitedCoefficients() []string
}

// Contraction says how well a compressor keeps public copies near the vectors that they copy.
type Contraction struct {
	Message   float64 // The share of the square of the distance that a message removes; at most 0 if it may grow.
	Iteration float64 // The share that a mean iteration removes, in which not all agents send.
	Limit     float64 // The consensus step size above which differences between agents may grow.
}

// GossipMomentum is a momentum that contains the averaging, over the edges of the last iteration of
// each round.
type GossipMomentum struct {
	MomentumRule
	Mu     float64
	Steps  int     // The number of steps of a round.
	Weight float64 // The weight of an edge; 0 if the edge process gives it, or it is the Metropolis weight.
}

// MomentumRule says how a momentum mu contains the averaging.
type MomentumRule interface {
	// Ahead returns the part of m by which a model moves in a round before it is averaged.
	Ahead(mu float64) float64
	// Move returns model and momentum after a round. pull is (I-W_t)(x - ahead·m).
	Move(mu, x, m, pull float64) (newX, newM float64)
}

// SumOfPulls is m ← mu·m + (I-W_t)x, x ← x - m.
type SumOfPulls struct{}

// Ahead is 0: the averaging comes first.
func (SumOfPulls) Ahead(float64) float64 { return 0 }

// Move applies the rule.
func (SumOfPulls) Move(mu, x, m, pull float64) (newX, newM float64) {
	m = float64(mu*m) + pull
	return x - m, m
}
