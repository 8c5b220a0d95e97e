package dist

import (
	"context"
	"errors"
	"fmt"
)

// Message is what one end of an edge tells the other at iteration T: one buffer for each vector
// that travels.
type Message struct {
	T        int
	From, To int
	Values   []*Buffer
	Codec    Codec // how a transport that leaves the process writes the values; nil: as float32
	// Arrives is when the message is there in the virtual time of simulated links, 0 where there
	// are none. A transport carries it along; it is no payload, and nothing waits for it.
	Arrives float64
}

// Release lets go of all values.
func (m Message) Release() {
	for _, b := range m.Values {
		b.Release()
	}
}

// ErrIdle means that an edge did not happen at this iteration, for either end: both get it, and
// both go on as if the edge process had not named the edge.
var ErrIdle = errors.New("dist: the edge was idle")

// Transport carries messages between agents. Each ordered pair of agents has a line of its own:
// messages arrive in the order they were sent, with the bits they were sent with, and no line waits
// for another one. All methods are safe for concurrent use.
type Transport interface {
	// Send hands m to the line from m.From to m.To. One holder of every buffer passes over to the
	// transport, also when Send returns an error; who wants to read a value afterwards retains it
	// before. The slice m.Values passes over with them. At least two messages of a line may be
	// unread before Send waits: an agent may run ahead of a peer that only listens. The errors are
	// those of ctx and of a network that is lost for good. A message that the network gives up is
	// no error here: Recv tells both ends. A sender that awaits nothing hears of it only if the
	// algorithm makes the receiver answer.
	Send(ctx context.Context, m Message) error

	// Recv waits for the message of iteration t from agent from to agent self. The receiver becomes
	// the holder of its buffers. ErrIdle says that the edge did not happen. Any other message than
	// that of t is an error: the two ends do not agree on the edge process.
	Recv(ctx context.Context, self, from, t int) (Message, error)
}

// CheckIteration returns the error of a receiver that awaits iteration t and is given m, after it
// has let go of m's values, or nil. It is for those who implement a Transport.
func CheckIteration(m Message, t int) error {
	if m.T == t {
		return nil
	}
	m.Release()
	return fmt.Errorf("dist: agent %d awaits the message of iteration %d from agent %d and got that of iteration %d; "+
		"both must use the same seed, graph and edge process, and ask for every message that is sent", m.To, t, m.From, m.T)
}
