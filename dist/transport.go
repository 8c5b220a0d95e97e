package dist

import (
	"context"
	"errors"
	"fmt"
)

// Message is a message from one end of an edge to the other at iteration T. It has a buffer for
// each vector.
type Message struct {
	T        int
	From, To int
	Values   []*Buffer
	// Codec encodes the values between processes. Without one they are float32.
	Codec Codec
	// Exact says that plain values travel as float32, whatever the format of the run.
	Exact bool
	// Piece is the number of the [Piece] that Codec is, from 1; 0: it is none.
	Piece int
	// Arrives is the arrival time in the virtual time of simulated links, 0 without them. A
	// transport preserves it. It is metadata: it is not counted and delays nothing.
	Arrives float64
}

func (m Message) Release() {
	for _, b := range m.Values {
		b.Release()
	}
}

// ErrIdle means that an edge is not active at this iteration because the network failed. Both ends
// get it, and continue as if the edge process had not selected the edge.
var ErrIdle = errors.New("dist: the edge was idle")

// Transport carries messages between agents. Each ordered pair of agents has a stream of its own:
// messages arrive in the order in which they were sent, bit-identical, and streams do not block
// each other. All methods are safe for concurrent use.
type Transport interface {
	// Send sends m over the stream from m.From to m.To. It takes over m.Values and one reference to
	// every buffer, also if it returns an error; a sender that reads a value afterwards retains it
	// before. At least two messages of a stream may be unread before Send blocks, so that an agent
	// may run ahead of a peer that only receives. It fails if ctx ends, or if the network has
	// failed permanently. A message that the network gives up is not an error here: Recv reports it
	// to both ends. A sender that expects no message learns of it only if the algorithm makes the
	// receiver answer.
	Send(ctx context.Context, m Message) error

	// Recv waits for the message of iteration t from agent from to agent self. The caller owns a
	// reference to its buffers. ErrIdle means that the edge is not active. A message of another
	// iteration than t is an error: the two ends disagree about the edge process.
	Recv(ctx context.Context, self, from, t int) (Message, error)
}

// Poller is a [Transport] that knows whether Recv would wait.
type Poller interface {
	Transport
	// Arrived returns the number of messages from agent from to agent self that Recv would return
	// at once.
	Arrived(self, from int) int
}

// CheckIteration returns an error and releases m unless m is of iteration t. It is for
// implementations of Transport.
func CheckIteration(m Message, t int) error {
	if m.T == t {
		return nil
	}
	m.Release()
	return fmt.Errorf("dist: agent %d expects the message of iteration %d from agent %d and received that "+
		"of iteration %d; both must use the same seed, graph and edge process, and receive every message that is sent",
		m.To, t, m.From, m.T)
}
