package membership

import "iter"

// Rules are the properties of a run by which its members agree on who leaves.
type Rules struct {
	Agents    int
	MinAgents int // The fewest members: below it nobody leaves.
	// Joint says that messages of an agent that leaves count up to the same exchange at all
	// members.
	Joint     bool
	Exchanges int // The number of exchanges in an iteration that has any.
	Round     int // Members change at multiples of this number of iterations; 0: 1.
	// Ahead says that a new member may begin with the state of a donor of an earlier iteration.
	Ahead bool
	// Sends lists the pairs of agents of which the first sends to the second in an iteration, if
	// both are members. nil: any pair may.
	Sends func(t int) iter.Seq2[int, int]
}

// After returns the first iteration at which members may change and that begins after an exchange.
func (r *Rules) After(e Exchange) int {
	if e == Head(e.T) {
		e.T--
	}
	round := max(1, r.Round)
	return (e.T + round) / round * round
}

// next returns the first exchange in which one agent sends to another one, from exchange e on and
// before iteration end.
func (r *Rules) next(from, to int, e Exchange, end int) (at Exchange, sends bool) {
	for ; e.T < end; e = e.next(r.Exchanges) {
		if r.Sends == nil {
			return e, true
		}
		for i, j := range r.Sends(e.T) {
			if i == from && j == to {
				return e, true
			}
		}
	}
	return e, false
}
