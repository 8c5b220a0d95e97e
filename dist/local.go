package dist

import (
	"context"
	"fmt"
	"sync"
)

// Local is the Transport between the goroutines of one process. Buffers change hands, nothing is
// copied, and no goroutine is started.
type Local struct {
	n     int
	boxes []inbox // by receiver
}

// inbox holds the lines that lead to one agent. They are made when first used.
type inbox struct {
	mu   sync.RWMutex
	from map[int]chan Message
}

// lineCapacity is how many messages of a line may be unread. An agent that only speaks can so be
// ahead of its listeners; agents that exchange never have more than one unread.
const lineCapacity = 2

var _ Transport = (*Local)(nil)

// NewLocal returns the transport between agents 0..n-1.
func NewLocal(n int) *Local {
	if n < 1 {
		panic(fmt.Sprintf("dist: NewLocal(%d): it takes at least one agent", n))
	}
	l := &Local{n: n, boxes: make([]inbox, n)}
	for i := range l.boxes {
		l.boxes[i].from = make(map[int]chan Message)
	}
	return l
}

// Send implements [Transport].
func (l *Local) Send(ctx context.Context, m Message) error {
	line := l.line(m.From, m.To)
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
	line := l.line(from, self)
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
func (l *Local) line(from, to int) chan Message {
	if from == to || min(from, to) < 0 || max(from, to) >= l.n {
		panic(fmt.Sprintf("dist: no line leads from agent %d to agent %d of %d", from, to, l.n))
	}
	box := &l.boxes[to]
	box.mu.RLock()
	line := box.from[from]
	box.mu.RUnlock()
	if line != nil {
		return line
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if line = box.from[from]; line == nil {
		line = make(chan Message, lineCapacity)
		box.from[from] = line
	}
	return line
}
