// Package nats is the dist.Transport between processes and machines, on the messaging engine NATS.
//
// Each process opens one [Node] for one agent. A node starts a NATS server of its own inside the
// process and joins it to those of the others by routes, so that the messages of a pair go straight
// between their two servers; or it is a client of a cluster that is there already. Every agent
// listens on one subject for each other agent, fspda.RUN.TO.FROM, and nobody else has business
// there.
//
// What NATS promises is little: a message comes whole, once or not at all. What an edge needs is
// more: it happens at both of its ends or at neither, also where links drop and processes die. So:
//
//   - Messages of a line are numbered. A sender keeps each until its receiver has said that it will never ask again; a receiver that waits
//     asks for what is missing, from the first byte that it lacks. What comes twice is dropped by its number.
//   - A receiver says two things: how far its agent has taken messages, which makes room at the sender, and how far they are part of a
//     checkpoint on its disk, which lets the sender forget. An agent that crashed goes on from its checkpoint, is sent again what it had
//     heard since, says again what it had said, and since training is a pure function of its input nobody can tell that it was gone.
//   - Large messages need not go through the servers: a node has a [Door], a gRPC server of its own, and the handshake says where. What others
//     send there is the same frames, over the same TLS, from where the numbers lie. It is a faster way and no more: where a node cannot be reached, or the way
//     breaks, its messages go over NATS, and what was lost is asked for like anything else.
//   - [Node.Save] is what a checkpoint must hold of the lines: their numbers, and what was sent and may be asked for again.
//
// Before anything else two nodes shake hands: each repeats a number that the other has drawn for
// this life of its process, so that old frames convince nobody, and both compare what their runs
// are made of ([Options.Identity]). A difference is refused by name. With certificates the
// handshake also agrees on keys, by which each end seals what it says: no member of the mesh speaks
// in another's name (seal.go).
//
// All that arrives is untrusted: every length is checked before memory is taken for it, and every
// frame has a checksum, a seal, or a connection that guards it. Start with frame.go for the format,
// peer.go for the life of a line, node.go for the rest.
package nats
