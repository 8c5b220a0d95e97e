// Package simnet simulates links between agents in virtual time.
//
// [Links] says how long a message and a gradient take. It is read from a file of latencies,
// bandwidths, losses and compute times ([Parse]); docs/links.md describes the format. Nothing in
// this package waits or sends: it computes times, and the caller moves the values.
//
// Two simulations use it. In a synchronous run each agent has a [Clock]: the time of every message
// travels with the message, so that no agent reads another agent's clock. In an asynchronous run
// one [Timeline] plays the events of all agents in the order of virtual time and lists the
// operations of each agent ([Op]).
//
// All times are pure functions of the seed. They do not depend on threads, on the order in which
// messages are delivered, or on the vectors that are trained, so a resumed run repeats them
// exactly.
//
// Start reading at links.go; computetime.go holds the distributions of compute times.
package simnet
