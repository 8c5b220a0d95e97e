package membership

import "iter"

// Rules are the properties of a run by which its members agree on who leaves.
type Rules struct {
	Agents    int
	MinAgents int // The fewest members: below it nobody leaves.
	// Joint says that the messages of an agent that leaves count up to the same exchange at all members.
	Joint     bool
	Exchanges int // The number of exchanges in an iteration that has any.
	// Sends lists the pairs of agents of which the first sends to the second in an iteration, if both are
	// members. nil: none are known.
	Sends func(t int) iter.Seq2[int, int]
}
