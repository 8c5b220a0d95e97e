// Package rng is the only source of randomness in fspda: random streams that are derived from keys.
//
// A [Stream] is a pure function of (run seed, stream name, key), without shared or global state. So
// the two ends of an edge derive the same mask without communication, a run can be replayed from
// any iteration, and a metric that uses random numbers cannot change a trajectory. The table lists
// all names in use and their keys.
//
//	name        key                     used for
//	init        -                       initial model
//	partition   -                       data split
//	batch       agent, local epoch      order of an agent's examples (sampling iid: agent, step)
//	augment     agent, step, position   augmentation of an example of a batch
//	graph0      try                     random base graphs
//	edges       Sub(t)                  active edges, broadcasters, coins; all agents derive it
//	mask        t, min(i,j), max(i,j)   coordinates exchanged over edge (i,j)
//	quant       t, agent                stochastic rounding
//	async       agent                   simulated compute times
//	synthetic   split, example          the built-in data sets; Sub(block) for labels
//	synthetic-images  split, example    the built-in images; Sub for their grain
//	synthetic-text  split               the built-in text; 0 and the context for its source
//	windows     t                       windows of text of an evaluation
//	sim-cut     edge, t                 failing edges of the simulated network
//	sim-delay   t, from, to             delays of messages, in deliveries
//	recalibrate k                       k-th batch for the recalibration of batch norm
//	sample      number of the text      tokens that a language model writes
//	sweep       hash of a key, sample   values of a hyperparameter search
//
// Numbers come from splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014) over a counter, so the n-th number of a stream is computable without the previous ones and
// a GPU draws the same bits. Integers, and the floats made from them by one multiplication, are the
// same on every machine. [Stream.Norm], [Stream.Exp] and [Stream.Gamma] use logarithms, whose last
// bit may differ between processor architectures, so masks and edges never use them.
//
// The derivation is versioned: see [Version].
package rng
