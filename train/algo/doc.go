// Package algo implements the update rules of decentralized training: one file per algorithm,
// without goroutines, clocks, files or sockets.
//
// An [Algorithm] is a value that holds settings; an agent's vectors and working memory are in its
// [State]. An iteration has two halves. In Local the agent posts messages to its links, computes
// its gradient, and makes the dense part of its update. In Mix it applies what it received. The
// caller (fspda/train with goroutines, or a test with a loop) fills the [Round] before each half. A
// link without received vectors is an exchange that failed, for both of its ends.
//
// Convention: D = own - other on the coordinates of the mask, both at the start of the iteration.
// The primal update subtracts multiples of D, the dual update adds them. The names x, alpha, eta,
// gamma, beta, lambda and the equation numbers are those of the paper "A Stochastic Approximation
// Approach for Efficient Decentralized Optimization on Random Networks".
//
// An algorithm that averages with a matrix W uses differences, x ← x - Σ w·D. The two ends of an
// edge add exact negatives, and a failed edge drops both terms. So the mean, and all sums that
// should be zero, are preserved under any failures. An agent that receives several full vectors
// first sums the differences, in the order of the agents, and rounds the sum once; on a complete
// graph all agents share that sum (mix.go). Sums that should be zero are then zero up to the
// rounding of differences.
//
// Start reading at algo.go, then fspda.go and its example.
package algo
