// Package discover defines how an agent in a process of its own finds the other agents of its run.
//
// A [Discovery] says where another agent accepts connections. The transport, package link, dials
// that address, and both ends then authenticate each other. Nothing that a Discovery says is
// trusted.
//
// [File] is a file of addresses. Package nats finds agents over NATS servers. It also relays
// connections between agents that cannot dial each other.
package discover
