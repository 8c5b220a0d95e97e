// Package nats implements dist.Transport between processes and machines, on the messaging system
// NATS.
//
// Each process opens one [Node] for one agent. By default a node starts an embedded NATS server and
// joins it to the servers of the other agents by routes, so that messages between two agents go
// directly between their servers. Alternatively the node is a client of an existing NATS cluster.
// Every agent subscribes to one subject per other agent, fspda.RUN.TO.FROM; nobody else publishes
// or subscribes there.
//
// NATS delivers a message whole, at most once. An edge needs more: it must happen at both of its
// ends or at neither, also when links drop and processes crash. Therefore:
//
//   - The messages of a stream are numbered. A sender keeps each message until its receiver has
//     said that it will never request it again. A receiver that waits requests the missing message
//     from the first missing byte. Duplicates are recognised by their number and dropped.
//   - A receiver acknowledges two positions: which messages its agent has consumed, which makes
//     room at the sender, and which of them are part of a checkpoint on disk ("stable"), which lets
//     the sender delete them. An agent that crashed continues from its checkpoint: it receives
//     again what it had received since, and sends again what it had sent. Training is a pure
//     function of its input, so the other agents cannot observe the restart.
//   - Large messages can bypass the NATS servers. A node may run a [DirectServer], a gRPC server
//     whose address is part of the handshake. Other nodes send it the same frames, over the same
//     TLS, without copying the values. It is an optimisation only: where a node cannot be reached,
//     or the connection breaks, messages go over NATS, and lost ones are requested as usual.
//   - [Node.Save] returns the state of the streams for a checkpoint: their positions, and the
//     messages that were sent and may be requested again.
//
// Two nodes first complete a handshake. Each repeats a number that the other has drawn for its
// incarnation (one lifetime of a process), so that replayed frames are recognised, and both compare
// the properties of their runs ([Options.Identity]). A node that differs is refused with the name
// of the property. With certificates, the handshake also derives keys with which each end
// authenticates its frames, so that no agent can send in the name of another one (auth.go).
//
// All input is untrusted: lengths are checked before memory is allocated, and every frame is
// protected by a checksum, an authentication tag or the connection. Start with frame.go for the
// format, peer.go for the streams between two agents, and node.go for the rest.
package nats
