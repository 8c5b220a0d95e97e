// Package link implements dist.Transport between processes and machines: gRPC streams between the
// agents.
//
// Each process opens one [Node] for one agent. Between two nodes there is one link: a bidirectional
// gRPC stream, over mutual TLS 1.3 where there are certificates. TLS provides identity,
// confidentiality, forward secrecy and protection against replays; HTTP/2 provides flow control.
// The node of the higher rank dials the other one. A discover.Discovery tells it the addresses.
// Where the other node cannot be reached directly, the Discovery may relay a connection, on which
// the same TLS and gRPC run. Nothing that a Discovery delivers is trusted.
//
// A link may end at any time, and a process may crash. An edge must happen at both of its ends or
// at neither. Therefore:
//
//   - The messages of a stream are numbered, and a sender keeps each one in a log until its
//     receiver will never need it again. When two nodes connect, each tells the other from which
//     number on it needs the messages of each stream. The link sends the messages between this
//     cursor and the end of the log, as far as a window allows. So a message that is new and one
//     that was lost are sent by the same code, and no timer is involved.
//   - A receiver acknowledges two positions in each frame: which messages its agent has consumed,
//     which makes room in the window, and which of them the agent will not need after a restart
//     ("stable"), which lets the sender delete them. An agent that crashed continues from its
//     checkpoint: it receives again the messages that it had received since, and sends again those
//     that it had sent. Training is a pure function of its input, so the other agents cannot
//     observe the restart.
//   - [Node.Save] returns the state of the streams for a checkpoint: their positions, and the
//     messages that were sent and may be needed again.
//
// The first frames of a link are a handshake that compares the properties of the two runs
// ([Options.Identity]). A node that differs is refused with the name of the property.
//
// All input is untrusted: lengths are checked before memory is allocated. docs/protocol.md
// describes states, messages and faults. Start with frame.go for the format, link.go and peer.go
// for the streams between two agents, dial.go for connections, and node.go for the rest.
package link
