package dist

import (
	"context"
	"fmt"
	"sync"
)

// Local is the Transport between the goroutines of one process. Buffers change hands, nothing is
// copied, and no goroutine is started.
type Local struct {
	n         int
	receivers []receiver // by receiver
}

// inbox holds the lines that lead to one agent. They are made when first used.
type receiver struct {
	mu      sync.RWMutex
	streams map[int]chan Message
}

// lineCapacity is how many messages of a line may be unread. An agent that only speaks can so be
// ahead of its listeners; agents that exchange never have more than one unread.
const streamCapacity = 2

var _ Transport = (*Local)(nil)

// NewLocal returns the transport between agents 0..n-1.
func NewLocal(n int) *Local {
	if n < 1 {
		panic(fmt.Sprintf("dist: NewLocal(%d): it takes at least one agent", n))
	}
	l := &Local{n: n, receivers: make([]receiver, n)}
	for i := range l.receivers {
		l.receivers[i].streams = make(map[int]chan Message)
	}
	return l
}

// Send implements [Transport].
func (l *Local) Send(ctx context.Context, m Message) error {
	line := l.stream(m.From, m.To)
	select {
	case line <- m: // also under a ctx that is done: there was room
		return nil
	default:
	}
	select {
	case line <- m:
		return nil
	case <-ctx.Done():
		m.Release()
		return fmt.Errorf("dist: sending iteration %d from agent %d to agent %d: %w", m.T, m.From, m.To,
			context.Cause(ctx))
	}
}

// Recv implements [Transport].
func (l *Local) Recv(ctx context.Context, self, from, t int) (Message, error) {
	line := l.stream(from, self)
	var m Message
	select {
	case m = <-line:
	default:
		select {
		case m = <-line:
		case <-ctx.Done():
			return Message{}, fmt.Errorf("dist: agent %d awaiting iteration %d from agent %d: %w", self, t, from,
				context.Cause(ctx))
		}
	}
	if err := CheckIteration(m, t); err != nil {
		return Message{}, err
	}
	return m, nil
}

// line returns the channel from one agent to another.
func (l *Local) stream(from, to int) chan Message {
	if from == to || min(from, to) < 0 || max(from, to) >= l.n {
		panic(fmt.Sprintf("dist: no line leads from agent %d to agent %d of %d", from, to, l.n))
	}
	box := &l.receivers[to]
	box.mu.RLock()
	line := box.streams[from]
	box.mu.RUnlock()
	if line != nil {
		return line
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if line = box.streams[from]; line == nil {
		line = make(chan Message, streamCapacity)
		box.streams[from] = line
	}
	return line
}
