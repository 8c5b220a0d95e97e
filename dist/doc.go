// Package dist defines the communication of decentralised training: the graph, the active edges,
// the coordinates that are sent, the transport, and the count of bits.
//
// A [Graph] says which agents are neighbours. A [Process] selects the edges that are active at
// iteration t. A [Mask] selects the coordinates that are exchanged over an edge. A [Transport]
// carries the values, in a [Buffer] that both ends share without a copy. A [Ledger] counts the
// bits. A [Mixing] holds the weights of algorithms that average over a fixed graph.
//
// Edges and masks are never announced: they are pure functions of (run seed, t) and (run seed, t,
// i, j), so each agent computes them on its own and no barrier is needed. Invariant: an edge is
// active at both of its ends or at neither. A [Transport] that cannot deliver returns [ErrIdle] to
// both.
//
// A [Compressor] selects the sent numbers by the values themselves, for algorithms that keep a
// public copy of each model. A [Lattice] sends colours, which the receiver decodes relative to its
// own vector. Within a process, compressed values stay in device vectors: a [Message] holds the
// numbers as they arrive, their coordinates in [Buffer.Coords], and the [Codec] that writes exactly
// the bits that the Ledger counts. A transport between processes runs the codec; the numbers are
// bit-identical.
//
// Duties of an agent at iteration t, in this order:
//
//  1. ask the Process for the events and keep those it takes part in;
//  2. for each: draw the mask, gather the values, [Transport.Send] them, and add the message to the
//     Ledger;
//  3. for each: [Transport.Recv] the values of the other end for the same t; skip the edge if that
//     returns [ErrIdle];
//  4. [Buffer.Release] the received values after use.
//
// Conventions. A slice named dst is overwritten and returned, and grown if it is too short: pass
// the result again to avoid allocations. All other arguments are read-only. Graphs, processes,
// masks and mixing matrices are immutable and safe for concurrent use; a Ledger belongs to one
// agent. Iterations count from 0. Every kind of object has a spec, a name with arguments in
// brackets, such as "ring", "er(0.5)" or "dct(64,32)", which its Parse function reads and its
// String method writes. A table of each kind has a row for every name: its arguments, its meaning
// and its constructor.
//
// Start with graph.go, process.go and mask.go; transport.go is the interface that local.go
// implements between goroutines. Package link implements it between processes and machines. Package
// internal/testing/disttest has the contract of every Transport, and simulated networks with faults.
package dist
