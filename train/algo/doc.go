// Package algo holds the mathematics of decentralized training alone: one file per algorithm, no
// goroutine, clock, file or socket.
//
// An [Algorithm] is a value that holds settings; what an agent remembers from one iteration to the
// next is in its [State]. Each iteration has two halves. In Local the agent is by itself: it posts
// what its links should hear, takes the gradient, and makes the dense part of its move. In Mix it
// has what the links sent and makes the rest. Whoever drives the halves (fspda/train with
// goroutines, a test with a loop) fills the [Round] in between; a link that heard nothing is an
// edge that did not happen, for both of its ends.
//
// Convention: D = own - other on the coordinates of the mask, both taken at the start of the
// iteration. The primal subtracts multiples of D, the dual adds them. The names x, alpha, eta,
// gamma, beta, lambda are those of the paper "A Stochastic Approximation Approach for Efficient
// Decentralized Optimization on Random Networks".
//
// An algorithm that averages with a matrix W does so in differences, x ← x - Σ w·D: what both ends
// of an edge add are exact negatives, and an edge that fails takes its two terms along. So the mean
// and all sums that should be zero stay what they are, whatever fails. Where an agent hears several
// others in full, their differences are summed up first, in the order of the agents, and the sum is
// rounded before it is spread; on a complete graph all agents share that sum (mix.go). What should
// be zero is then zero to the rounding of differences.
//
// Read on in algo.go, then fspda.go and its example.
package algo
