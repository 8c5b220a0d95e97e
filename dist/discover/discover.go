package discover

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
)

// Version is the version of the protocol between agents, which docs/protocol.md describes.
const Version = 8

// MaxAddresses is the largest number of addresses of one agent.
const MaxAddresses = 16

// Branches is the largest number of agents that a tree of agents has directly below one.
const Branches = 6

// Parent returns the agent above another one in the tree of agents, whose root is agent 0.
func Parent(rank int) int { return (rank - 1) / Branches }

// Discovery finds the other agents of a run for one agent. Its methods are safe for concurrent use.
type Discovery interface {
	// Start begins to answer other agents on behalf of an agent. When the context ends, the agent
	// accepts no connection any more, and nobody is told its addresses.
	Start(ctx context.Context, a Agent) error
	// Addresses waits until it is known where another agent accepts connections. It returns the
	// addresses, HOST:PORT, in the order in which to dial them. An agent that accepts relayed
	// connections only has none.
	Addresses(ctx context.Context, agent int) ([]string, error)
	// Relay opens a connection to an agent that cannot be dialed. A Discovery that relays nothing
	// returns an error.
	Relay(agent int) (net.Conn, error)
	// Stats returns counters for monitoring.
	Stats() Stats
	// Close ends all work. Relayed connections end.
	Close()
}

// Agent is the agent that a Discovery works for.
type Agent struct {
	// Addresses returns the addresses at which the agent accepts connections now, HOST:PORT.
	Addresses func() []string
	// Connect opens a connection to the agent's own server inside this process. The Discovery
	// copies between this connection and one that another agent has relayed.
	Connect func(context.Context) (net.Conn, error)
	// Connected returns the number of other agents that are connected.
	Connected func() int
	// Fail ends the work of the agent with an error.
	Fail func(error)
}

// Stats are the counters of a Discovery.
type Stats struct {
	Dropped uint64 // The number of invalid packets.
	Trouble uint64 // The number of errors of the connection to a server.
}

var validRunName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckRun returns an error if a run may not have this name.
func CheckRun(name string) error {
	if !validRunName.MatchString(name) {
		return fmt.Errorf("discover: the run is named %q: use letters, digits, - and _, at most 64", clip(name))
	}
	return nil
}

// HostPort splits an address.
func HostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		if port, err = strconv.Atoi(text); err == nil && port >= 0 && port <= 65535 {
			return host, port, nil
		}
	}
	return "", 0, fmt.Errorf("discover: %q is not an address: write HOST:PORT", clip(address))
}

// clip shortens a string of unknown origin for errors.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
