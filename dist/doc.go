// Package dist says who may talk, who does, what travels, and what it costs.
//
// A [Graph] says which agents may talk to each other. A [Process] picks the edges that are active
// at iteration t. A [Mask] picks the coordinates that travel over one of them. A [Transport]
// carries the values, in a [Buffer] that the ends share without a copy. A [Ledger] counts the bits.
// A [Mixing] holds the weights of the algorithms that average over a fixed graph.
//
// Nobody announces an edge or a mask: both are pure functions of (run seed, t) and (run seed, t, i,
// j), so each agent works out by itself whom it meets and on which coordinates. Agents therefore
// need no barrier. The one rule they must keep: an edge happens at both of its ends or at neither.
// A [Transport] that cannot deliver says [ErrIdle] to both.
//
// A [Compressor] picks what travels by the values themselves, for algorithms that keep a public
// copy of each model, and a [Lattice] sends colours that mean something only near the receiver's
// own vector. What is compressed stays in device vectors as long as it stays in the process: a
// [Message] then holds the numbers as they arrive, their coordinates in [Buffer.Coords], and the
// [Codec] that writes exactly the bits the Ledger counts. A transport that leaves the process runs
// the codec; the numbers are the same bits.
//
// Duties of an agent at iteration t, in this order:
//
//  1. ask the Process for the events and keep those it takes part in;
//  2. for each: draw the mask, gather the values, [Transport.Send] them, and note the message in the Ledger;
//  3. for each: [Transport.Recv] the other end's values of the same t; skip the edge where that returns [ErrIdle];
//  4. [Buffer.Release] what was received, once it is used.
//
// Conventions. A slice named dst is overwritten from its start and returned, grown where it was too
// short: keep the result and pass it again, and nothing is allocated. Everything else is only read.
// Graphs, processes, masks and mixing matrices are immutable and safe for concurrent use; a Ledger
// belongs to one agent. Iterations count from 0. Each kind of thing has a one-word spelling with at
// most one argument, such as "ring" or "er(0.5)", which its Parse function reads and its String
// method writes.
//
// Start with graph.go, process.go and mask.go; transport.go is the promise that local.go keeps
// between goroutines. The package nats below keeps it between processes and machines, and disttest
// has the contract of every Transport, and a simulated network with faults.
package dist
