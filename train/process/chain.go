package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"fspda/dist"
)

// chain is the place of this process among those that make the sums of evaluations, in the order of
// their agents. Sums are made in attempts, which agent 0 begins. When a process is started again, its
// neighbours notice that their sessions with it have ended, and agent 0 begins another attempt. An
// evaluation is final when its row is on the disk of agent 0. Until then each process keeps its
// snapshot and takes part in further attempts.
type chain struct {
	net        Network
	rank, last int

	mu      sync.Mutex
	changed sync.Cond
	sides   [2]side
	final   int      // The iteration of the latest evaluation that is final; -1: none is.
	ended   int      // Agent 0 takes no part in evaluations up to this iteration any more.
	running int      // The iteration of the evaluation that is being made; -1: none.
	latest  uint64   // The number of the latest attempt.
	current *attempt // The latest attempt; nil: it has failed, or its evaluation is over.
}

// side is the link of a chain to the agent before or after.
type side struct {
	session dist.CheckedSession // nil: none was opened yet.
	used    bool                // The current attempt has used it.
}

// The sides of a chain.
const (
	before = iota
	after
)

// The kinds of records in sessions of evaluations. A record has its kind, as a byte, and two numbers
// of 64 bits, little-endian. Numbers follow in recordNumbers.
const (
	recordNumbers = 'd' // attempt, iteration: numbers of the attempt
	recordAgain   = 'a' // attempt, 0: the attempt has failed
	recordFinal   = 'f' // 0, iteration: evaluations up to the iteration are final
)

const recordHead = 17

// maxNumbers is the largest number of numbers in a record.
const maxNumbers = 1 << 16

// attempt is an attempt to make the sums of one evaluation.
type attempt struct {
	*chain
	number  uint64
	t       int
	ctx     context.Context
	cancel  context.CancelFunc
	begun   bool
	arrived [2]chan []byte
}

func newChain(net Network, rank, agents, final int) *chain {
	c := &chain{net: net, rank: rank, last: agents - 1, final: final, ended: -1, running: -1}
	c.changed.L = &c.mu
	return c
}

// peer returns the agent at a side.
func (c *chain) peer(at int) int { return c.rank - 1 + 2*at }

// serve handles the records from one side until ctx ends.
func (c *chain) serve(ctx context.Context, at int) error {
	for peer := c.peer(at); peer >= 0 && peer <= c.last; {
		s, err := c.net.OpenEvaluations(ctx, peer)
		if err != nil {
			return err
		}
		c.opened(ctx, at, s)
		for err == nil {
			err = s.Take(ctx, func(record []byte) error { return c.handle(ctx, at, record) })
		}
		if !errors.Is(err, dist.ErrSessionClosed) {
			return err
		}
	}
	return nil
}

// opened takes a new session. If the attempt has used the one before, a part of its numbers may be
// lost, and it has failed.
func (c *chain) opened(ctx context.Context, at int, s dist.CheckedSession) {
	c.mu.Lock()
	failed := c.current
	if !c.sides[at].used {
		failed = nil
	}
	c.sides[at] = side{session: s}
	if failed != nil {
		c.abandon()
	}
	final := c.final
	c.changed.Broadcast()
	c.mu.Unlock()
	if at == after {
		c.tell(ctx, after, recordFinal, 0, final)
	}
	if failed != nil {
		c.tell(ctx, before, recordAgain, failed.number, 0)
	}
}

// tell sends a record without numbers, if there is a session.
func (c *chain) tell(ctx context.Context, at int, kind byte, attempt uint64, t int) {
	c.mu.Lock()
	s := c.sides[at].session
	c.mu.Unlock()
	if s != nil {
		_ = s.Send(ctx, recordOf(kind, attempt, t, nil)) // opened tells it again if the session has ended
	}
}

func recordOf(kind byte, attempt uint64, t int, numbers []float64) []byte {
	b := append(make([]byte, 0, recordHead+8*len(numbers)), kind)
	b = binary.LittleEndian.AppendUint64(b, attempt)
	b = binary.LittleEndian.AppendUint64(b, uint64(t))
	for _, x := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// handle handles a record from one side.
func (c *chain) handle(ctx context.Context, at int, record []byte) error {
	if len(record) < recordHead {
		return dist.Invalidf("a record of an evaluation of %d bytes", len(record))
	}
	number, t := binary.LittleEndian.Uint64(record[1:]), int(int64(binary.LittleEndian.Uint64(record[9:])))
	numbers := record[recordHead:]
	switch kind := record[0]; {
	case kind == recordNumbers && len(numbers)%8 == 0 && len(numbers) <= 8*maxNumbers && t >= 0:
		return c.take(ctx, at, number, t, numbers)
	case kind == recordFinal && at == before && t >= -1:
		c.finish(ctx, t)
	case kind == recordFinal && t >= -1:
		return c.compare(ctx, t)
	case kind == recordAgain && at == after && c.rank > 0:
		c.tell(ctx, before, recordAgain, number, 0)
	case kind == recordAgain && at == after:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.current != nil && c.current.number == number {
			c.abandon()
		}
	default:
		return dist.Invalidf("a record %q of an evaluation, of %d bytes", kind, len(record))
	}
	return nil
}

// compare tells agent 0 that another agent knows evaluations up to iteration t as final, unless this
// one does, too.
func (c *chain) compare(ctx context.Context, t int) error {
	c.mu.Lock()
	known := t <= c.final
	c.mu.Unlock()
	if !known && c.rank == 0 {
		return fmt.Errorf("process: agent 0 evaluates again before iteration %d, up to which it had written all rows: "+
			"metrics.jsonl in its run folder has lost some: restore it from a copy, or start the whole run again", t)
	}
	if !known {
		c.tell(ctx, before, recordFinal, 0, t)
	}
	return nil
}

// take passes numbers on to their attempt. If it has failed, they are dropped.
func (c *chain) take(ctx context.Context, at int, number uint64, t int, numbers []byte) error {
	c.mu.Lock()
	if at == before && number != c.latest {
		if final := c.final; t <= final { // The attempt began before, or agent 0 has lost the row.
			c.mu.Unlock()
			c.tell(ctx, before, recordFinal, 0, final)
			return nil
		}
		c.begin(number, t)
	}
	a := c.current
	if a == nil || a.number != number || a.t != t {
		c.mu.Unlock()
		return nil
	}
	c.sides[at].used = true
	c.mu.Unlock()
	select {
	case a.arrived[at] <- numbers:
	case <-a.ctx.Done():
	case <-ctx.Done():
	}
	return nil
}

// begin begins an attempt. The caller holds the lock.
func (c *chain) begin(number uint64, t int) {
	c.abandon()
	a := &attempt{chain: c, number: number, t: t,
		arrived: [2]chan []byte{make(chan []byte, 2), make(chan []byte, 2)}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	c.latest, c.current = number, a
	c.changed.Broadcast()
}

// abandon ends the current attempt. The caller holds the lock.
func (c *chain) abandon() {
	if c.current != nil {
		c.current.cancel()
	}
	c.current = nil
	for at := range c.sides {
		c.sides[at].used = false
	}
	c.changed.Broadcast()
}

// wake wakes all that wait for a change.
func (c *chain) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// finish says that the evaluations up to iteration t are final.
func (c *chain) finish(ctx context.Context, t int) {
	c.mu.Lock()
	news := t > c.final
	if c.final = max(c.final, t); c.current != nil && c.current.t <= c.final {
		c.abandon()
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	if news {
		c.tell(ctx, after, recordFinal, 0, t)
	}
}

// withdraw waits until this process takes no part in the evaluation at iteration t any more.
func (c *chain) withdraw(t int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = max(c.ended, t); c.current != nil && c.current.t <= t {
		c.abandon()
	}
	c.changed.Broadcast()
	for c.running >= 0 && c.running <= t {
		c.changed.Wait()
	}
}

// evaluate takes part in the attempts of the evaluation at iteration t, with do, until it is final.
func (c *chain) evaluate(ctx context.Context, t int, do func(*attempt) error) (final bool, err error) {
	defer context.AfterFunc(ctx, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = t
	defer func() {
		c.running = -1
		c.changed.Broadcast()
	}()
	for ctx.Err() == nil && t > max(c.final, c.ended) {
		if c.rank == 0 && (c.current == nil || c.current.t != t) {
			c.begin(rand.Uint64(), t)
		}
		a := c.current
		if a == nil || a.t != t || a.begun {
			c.changed.Wait()
			continue
		}
		a.begun = true
		c.mu.Unlock()
		stop := context.AfterFunc(ctx, a.cancel)
		err := do(a)
		stop()
		c.mu.Lock()
		if err != nil && a.ctx.Err() == nil && !errors.Is(err, dist.ErrSessionClosed) {
			return false, err
		}
	}
	return t <= c.final, nil
}

// Send sends numbers to the agent before or after.
func (a *attempt) Send(to int, numbers []float64) error {
	at := a.at(to)
	defer context.AfterFunc(a.ctx, a.wake)()
	a.mu.Lock()
	for a.sides[at].session == nil && a.ctx.Err() == nil {
		a.changed.Wait()
	}
	if a.ctx.Err() != nil {
		a.mu.Unlock()
		return a.ctx.Err()
	}
	a.sides[at].used = true
	s := a.sides[at].session
	a.mu.Unlock()
	return s.Send(a.ctx, recordOf(recordNumbers, a.number, a.t, numbers))
}

// Receive waits for the next numbers from the agent before or after, of which there are as many.
func (a *attempt) Receive(from int, into []float64) error {
	select {
	case numbers := <-a.arrived[a.at(from)]:
		if len(numbers) != 8*len(into) {
			return fmt.Errorf("process: agent %d has sent %d numbers of the evaluation at iteration %d, expected %d: "+
				"start it with the same program, configuration and data as the others", from, len(numbers)/8, a.t,
				len(into))
		}
		for k := range into {
			into[k] = math.Float64frombits(binary.LittleEndian.Uint64(numbers[8*k:]))
		}
		return nil
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

// at returns the side of an agent.
func (a *attempt) at(agent int) int {
	if agent < a.rank {
		return before
	}
	return after
}
