package dist

import (
	"context"
	"fmt"
	"sync"
)

// Local is the Transport between the goroutines of one process. Buffers change owners without a
// copy, and no goroutine is started.
type Local struct {
	n         int
	receivers []receiver // One for each rank.
}

// receiver holds the streams to one agent. They are created on first use.
type receiver struct {
	mu      sync.RWMutex
	streams map[int]chan Message
}

// streamCapacity is the number of messages of a stream that may be unread. It lets an agent that
// only sends run ahead of its receivers; agents that exchange never have more than one unread
// message.
const streamCapacity = 2

var _ Poller = (*Local)(nil)

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

func (l *Local) Send(ctx context.Context, m Message) error {
	ch := l.stream(m.From, m.To)
	select {
	case ch <- m: // also if ctx is done: there was capacity
		return nil
	default:
	}
	select {
	case ch <- m:
		return nil
	case <-ctx.Done():
		m.Release()
		return fmt.Errorf("dist: sending iteration %d from agent %d to agent %d: %w", m.T, m.From, m.To,
			context.Cause(ctx))
	}
}

func (l *Local) Recv(ctx context.Context, self, from, t int) (Message, error) {
	ch := l.stream(from, self)
	var m Message
	select {
	case m = <-ch:
	default:
		select {
		case m = <-ch:
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

func (l *Local) Arrived(self, from int) int { return len(l.stream(from, self)) }

// stream returns the channel from one agent to another.
func (l *Local) stream(from, to int) chan Message {
	if from == to || min(from, to) < 0 || max(from, to) >= l.n {
		panic(fmt.Sprintf("dist: no stream leads from agent %d to agent %d of %d", from, to, l.n))
	}
	r := &l.receivers[to]
	r.mu.RLock()
	ch := r.streams[from]
	r.mu.RUnlock()
	if ch != nil {
		return ch
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ch = r.streams[from]; ch == nil {
		ch = make(chan Message, streamCapacity)
		r.streams[from] = ch
	}
	return ch
}
