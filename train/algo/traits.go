package algo

import "fspda/device"

// Traits are the facts of an algorithm with its settings, from which the rest of the program knows
// how to run it. The zero value of each field but Edges is the usual case.
type Traits struct {
	Memory
	Exchange
	Rounds
	Updates
	Needs
	Membership
	About
}

// Memory says which memory an agent has besides its model and its gradient.
type Memory struct {
	// Aux names the vectors that an agent keeps between iterations, in the order of State.Aux,
	// without the vectors of its optimizer. All start at zero. Checkpoints store them.
	Aux []string
	// Scalars are the numbers that an agent keeps as State.Scalars, as they are at the start.
	Scalars []float64
	// EdgeVectors are the lengths of the vectors that an agent keeps for each of its edges of the
	// graph, in EdgeMemory.Vectors. They start at zero. ModelLength stands for the length of the
	// model.
	EdgeVectors []int
	// EdgesFromModel says that the vectors of the length of the model in EdgeVectors start at the
	// first model, which all agents have in common.
	EdgesFromModel bool
	// Mailbox lists where in State.Aux the buffer of an [Asynchronous] algorithm is: vectors that are
	// zero unless it holds an exchange.
	Mailbox []int
	// Tracked is the vector of Aux that sums to zero over the agents, if there is one.
	Tracked Tracked
	// Work counts the vectors of the length of the model that an agent has as working memory, in
	// State.Work.
	Work int
	// NewScratch returns other working memory of one agent, kept in State.Scratch. Neither outlives
	// the process: an agent restored from a checkpoint starts with new ones.
	NewScratch func() any
	// ScratchVectors counts the vectors of the length of the model in the memory of NewScratch.
	ScratchVectors int
	// Averages says that an agent keeps an average of its weights; see [Averaged].
	Averages bool
	// Transient says that the algorithm needs the gradient's vector, [State.Gradient], within Local
	// alone, or within one operation of an [Asynchronous] one. Until the next one the vector may be
	// another agent's.
	Transient bool
}

// ModelLength stands for the length of the model in Memory.EdgeVectors.
const ModelLength = 0

// Tracked is an auxiliary vector that sums to zero over the agents and converges to a multiple of
// ∇F - ∇f_i. Metrics report both.
type Tracked struct {
	Name string // The vector's name in Memory.Aux; empty if there is none.
	// Multiple is the multiple at constant step sizes alpha and eta.
	Multiple func(alpha, eta float64) float64
}

// Exchange says who communicates with whom, and what travels.
type Exchange struct {
	// Edges is the kind of edge processes that the algorithm can use. Every algorithm names one.
	Edges *Edges
	// Vectors counts the vectors that a message consists of; 0 stands for 1.
	Vectors int
	// MeanVectors is the mean number of vectors in a message, where not all of an all-reduce have
	// Vectors; 0 stands for Vectors.
	MeanVectors float64
	// Messages counts the messages that an agent posts on each link before an exchange; 0 stands for
	// 1. Their vectors follow each other in Link.Sent and Link.Received.
	Messages int
	// MessageLen is the mean number of values that an agent sends over a link in an iteration; 0 if
	// the messages hold whole vectors, or the coordinates of a mask.
	MessageLen float64
	// Delay is the number of iterations after which a message is received: the links to which Local
	// posts in iteration t belong to Mix of iteration t + Delay, and Mix of t has none. It is at most
	// Period, of an all-reduce without Between.
	Delay int
	// Repost posts the messages of an earlier iteration again from the vectors of an agent, with
	// Delay, in a run that is resumed while they were on their way.
	Repost Stage
	// Reduce computes the sums of the vectors that have arrived in an all-reduce by Round.Shared, in
	// their order, before Mix takes them. It changes no vector of the agent. It is needed with Delay,
	// and lets an all-reduce be divided where members may leave.
	Reduce Stage
	// Between lists the parts of an iteration between its exchanges, if it has several: each reads
	// what was received and posts the vectors of the next exchange.
	Between []Stage
	// Code is how messages are coded.
	Code Code
	// Compressor is the spec of the compressor of a CompressedCode, where settings of the method's own
	// name it; empty: the key compress does.
	Compressor string
	// Asynchronous moves the agents of an algorithm over Clocks; nil if it has iterations.
	Asynchronous Asynchronous
	// RealTime is Asynchronous if the agents may run in real time, too; nil if they may not.
	RealTime RealTime
	// Masks says that an exchange may carry the coordinates of a mask only.
	Masks bool
	// Mask is the mask that mask auto comes to in an all-reduce; empty if it is the usual one.
	Mask string
	// Parts are the parts of the model that exchanges have in turn, with the mask parts; nil: runs of
	// coordinates of equal length.
	Parts [][]device.Range
	// Rank is the number of directions of which an exchange carries one; 0 if it carries coordinates.
	Rank int
	// Mixing says that the algorithm averages with the fixed matrix W: Link.FixedWeight is set.
	Mixing bool
	// HalfLazy says that the matrix is (I+W)/2, with the W of the key mixing.
	HalfLazy bool
	// Tree says that the graph must not have cycles. An unset graph is then binary-tree.
	Tree bool
}

// Code is how the messages of an algorithm are coded.
type Code int

// The codes of messages.
const (
	PlainCode       Code = iota // Values, of all coordinates or of a mask.
	CompressedCode              // Compressed vectors that receivers add up: Round.Compress.
	LatticeCode                 // Vectors that a receiver decodes near its own: Round.Encode.
	CoefficientCode             // Coefficients of a transform: Round.Compress and Transform.
)

// Rounds says how iterations form rounds, and what an agent does in one.
type Rounds struct {
	// Period is the number of iterations of a communication round; 0 stands for 1. Rounds start at
	// iteration 0, and the agents communicate in the last iteration of each. The step sizes of its
	// first iteration hold throughout a round, and models are evaluated between rounds only.
	Period int
	// Scheduled says that step sizes follow the schedule within a round.
	Scheduled bool
	// WholeEvery is set for an all-reduce with a mask whose exchange has all coordinates in the last
	// iteration of each WholeEvery, which ends a round; 0 if none has.
	WholeEvery int
	// LocalSteps is what local_steps 0 comes to; 0 stands for 10.
	LocalSteps int
	// StepsPerExchange says that an agent takes local_steps steps in each iteration in which it has an
	// edge, and none in others.
	StepsPerExchange bool
	// Gradients counts the gradients of a batch in an asynchronous algorithm; 0 stands for 1.
	Gradients int
}

// Updates says how an agent moves its model.
type Updates struct {
	// Descent is the algorithm's optimizer, if it embeds a Descent.
	Descent Descent
	// Optimizers names the values of the key optimizer that it takes, the default first; nil if it
	// takes sgd alone. Any stands for all that are general.
	Optimizers []string
	// Placements names where its correction may enter with an adaptive optimizer, the default first;
	// nil if it has no correction.
	Placements []string
	// Takes is what its optimizer takes.
	Takes Gradient
	// ClipsMean says that gradients are not clipped before Grad returns them: the algorithm clips
	// their mean over the agents by Round.Clip.
	ClipsMean bool
	// Shifts says that averaging moves coordinates on which agents agree, by rounding or more, so that
	// no coordinate can be frozen.
	Shifts bool
}

// Gradient is what the optimizer of an algorithm takes.
type Gradient int

// What optimizers take.
const (
	OwnGradient     Gradient = iota // Of the agent's batch, with a correction where it is placed so.
	TrackedGradient                 // A tracker of the mean gradient; optimizers are placed corrected.
	MeanGradient                    // The mean over all agents.
)

// Placements of a correction, the values of the key placement besides auto.
const (
	PlacementLocal     = "local"
	PlacementCorrected = "corrected"
)

// Needs says which step sizes and gradients the algorithm is stated for.
type Needs struct {
	Dual     bool // It uses eta.
	Exact    bool // It is stated for exact gradients.
	Constant bool // It has no step size that a schedule could change.
}

// About is what the table of methods says of a method: docs/methods.md and fspda train --algo help.
// In formulas |E_t| is the number of active edges, n the number of agents, d the length of the
// model, k the number of coordinates in a mask, v the bits of a value and iota the bits of an
// index.
type About struct {
	Travels string // What travels over an active edge, each way.
	Bits    string // Bits of all agents in one iteration, with shared seeds.
	Keeps   string // Vectors of an agent besides model, gradient and optimizer.
	Skew    string // The effect of data that differ between agents.
	Graphs  string // Graphs and edge processes.
	Source  string
}

// Texts that several methods have in common.
const (
	exactOnSkew  = "exact"
	biasedOnSkew = "bias, proportional to alpha"
	anyGraph     = "any graph and process"
	staticGraph  = "any graph, all edges"
)

// Any in Updates.Optimizers stands for all optimizers that are general.
const Any = "any"

// What Updates.Optimizers and Updates.Placements are in several methods.
var (
	AnyOptimizer  = []string{Any}
	AnyMomentum   = []string{"heavy-ball", "nesterov"}
	HeavyBallOnly = []string{"heavy-ball"}

	AnyPlacement = []string{PlacementCorrected, PlacementLocal}
	LocalOnly    = []string{PlacementLocal}
)
