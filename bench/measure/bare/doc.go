// Package bare measures exchanges over NATS and gRPC themselves, with which package measure
// compares the exchanges of agents. It is a package of its own so that figures, which run in one
// process, compile neither.
package bare
