// Package nats implements dist.Transport between processes and machines: gRPC streams between the
// agents, which find each other over the messaging system NATS.
//
// Each process opens one [Node] for one agent. Between two nodes there is one link: a bidirectional
// gRPC stream, over mutual TLS 1.3 where there are certificates. TLS provides identity,
// confidentiality, forward secrecy and protection against replays; HTTP/2 provides flow control.
// The node of the higher rank dials the other one. NATS has two tasks, and nothing that it delivers
// is trusted:
//
//   - A node asks another one for its addresses over NATS. By default a node starts an embedded
//     NATS server and joins it to the servers of the other agents by routes. Alternatively it is a
//     client of an existing NATS cluster.
//   - Where a node cannot be reached directly, NATS relays a connection: a net.Conn whose bytes are
//     packets on a pair of subjects, on which the same TLS and gRPC run. A lost packet ends the
//     connection.
//
// A link may end at any time, and a process may crash. An edge must happen at both of its ends or at
// neither. Therefore:
//
//   - The messages of a stream are numbered, and a sender keeps each one in a log until its receiver
//     will never need it again. When two nodes connect, each tells the other from which number on it
//     needs the messages of each stream. The link sends what lies between this cursor and the end of
//     the log, as far as a window allows. So a message that is new and one that was lost take the
//     same way, and no timer is involved.
//   - A receiver acknowledges two positions in each frame: which messages its agent has consumed,
//     which makes room in the window, and which of them the agent will not need after a restart
//     ("stable"), which lets the sender delete them. An agent that crashed continues from its
//     checkpoint: it receives again what it had received since, and sends again what it had sent.
//     Training is a pure function of its input, so the other agents cannot observe the restart.
//   - [Node.Save] returns the state of the streams for a checkpoint: their positions, and the
//     messages that were sent and may be needed again.
//
// The first frames of a link are a handshake that compares the properties of the two runs
// ([Options.Identity]). A node that differs is refused with the name of the property.
//
// All input is untrusted: lengths are checked before memory is allocated. docs/protocol.md describes
// states, messages and faults. Start with frame.go for the format, link.go and peer.go for the
// streams between two agents, dial.go for connections, relay.go for NATS, and node.go for the rest.
package nats
