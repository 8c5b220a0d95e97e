// Package rng is the only source of randomness in fspda: random streams that are keyed, not drawn.
//
// A [Stream] is a pure function of (run seed, stream name, key). Nothing is shared and nothing is
// global, so the two ends of an edge derive the same mask without a message, a run can be replayed
// from any iteration, and a metric that draws numbers cannot disturb a trajectory. The names in use
// and their keys are those of the table of streams below.
//
//	name        key                     used for
//	init        -                       initial model
//	partition   -                       data split
//	batch       agent, local epoch      order of an agent's examples (sampling iid: agent, step)
//	augment     agent, step, position   how an example of a batch is varied
//	graph0      try                     random base graphs
//	edges       Sub(t)                  active edges, broadcasters, coins; Sub, because every agent asks at every iteration
//	mask        t, min(i,j), max(i,j)   coordinates that travel over edge (i,j)
//	quant       t, agent                stochastic rounding
//	async       agent                   simulated compute times
//	synthetic   split, example          the built-in data sets; Sub(block) for labels
//	synthetic-images  split, example    the built-in pictures; Sub for their grain
//	sim-cut     edge, t                 edges that the simulated network lets fail
//	sim-delay   t, from, to             deliveries by which it is late
//	recalibrate k                       examples of the k-th batch that measures batch norm's statistics anew
//	sweep       hash of a key, sample   values that a search over settings tries
//
// Numbers come from splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014) over a counter, so the n-th number of a stream is known without the ones before it and a
// GPU can draw the same bits. Integers, and the floats made from them by one multiplication, are
// the same on every machine. [Stream.Norm], [Stream.Exp] and [Stream.Gamma] go through logarithms,
// whose last bit may differ between processor architectures: masks and edges never use them.
//
// The derivation is versioned: see [Version].
package rng
