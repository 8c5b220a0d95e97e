// Package vectorpool has the vectors that agents of a device need for a part of a step only: the
// gradient, and the mailbox of an asynchronous algorithm. A [Pool] provides them. With [Private]
// each agent has vectors of its own; with [Shared], for runs of very many agents, an agent acquires
// vectors that others released, which are in the processor's cache. A [Cache] computes once a
// vector that all agents read in an iteration.
package vectorpool
