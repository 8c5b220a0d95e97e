// Package nats implements discover.Discovery over the messaging system NATS.
//
// By default each agent starts an embedded NATS server and joins it to the servers of the other
// agents as a leaf node. Alternatively it is a client of an existing NATS cluster. Either way:
//
//   - An agent asks another one for its addresses, in a packet, and gets them in another packet.
//   - Where an agent cannot be reached directly, NATS relays a connection: a net.Conn whose bytes
//     are packets on a pair of subjects. A lost packet ends the connection.
//
// Packets are not trusted: the two ends of a connection authenticate each other. docs/protocol.md
// describes packets and faults. Start with discovery.go, then see packet.go for the format,
// relay.go for connections, and server.go for the embedded server.
package nats
