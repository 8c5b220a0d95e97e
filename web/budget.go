package web

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/time/rate"
)

// Processor time of the net package and the kernel outside of a handler, with a margin.
const (
	connectionCost = 60 * time.Microsecond  // time of accepting and closing a connection
	requestCost    = 100 * time.Microsecond // time of reading a request and answering it
	eventCost      = 20 * time.Microsecond  // time of writing one event into a stream
	kibCost        = time.Microsecond       // time of sending one KiB
)

// burst is the most processor time that a budget saves up. It suffices for a browser that loads the
// page with a dozen long runs.
const burst = 100 * time.Millisecond

// budget limits the processor time that clients may use. The cost of work is known only afterwards:
// a client waits until nothing is unpaid, works, and is charged, and the next client waits until
// the charge is paid. The total therefore stays within the rate, whatever clients ask for.
type budget struct {
	limiter *rate.Limiter // tokens are nanoseconds of processor time; below 0 they are unpaid
	turn    chan struct{} // holds one element while a client waits for the limiter or works
}

// newBudget returns a budget of a share of all processors of this process; 0 is no limit.
func newBudget(share float64) *budget {
	limit := rate.Inf
	if share > 0 {
		limit = rate.Limit(share * float64(runtime.GOMAXPROCS(0)) * float64(time.Second))
	}
	return &budget{limiter: rate.NewLimiter(limit, int(burst)), turn: make(chan struct{}, 1)}
}

// do calls work, which must not wait for a client, and charges its processor time plus cost. It
// returns false, without calling work, if ctx ends before its turn.
func (b *budget) do(ctx context.Context, cost time.Duration, work func()) bool {
	if b.limiter.Limit() == rate.Inf {
		work()
		return true
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-b.turn }()
	if b.limiter.WaitN(ctx, 0) != nil { // returns when nothing is unpaid
		return false
	}
	b.charge(cost+processorTime(work), time.Now())
	return true
}

// wait waits for its turn and charges cost. It returns false if ctx ends before.
func (b *budget) wait(ctx context.Context, cost time.Duration) bool {
	return b.do(ctx, cost, func() {})
}

// charge subtracts a cost. A reservation may not exceed the burst, so a larger cost takes several.
func (b *budget) charge(cost time.Duration, now time.Time) {
	for ; cost > 0; cost -= burst {
		b.limiter.ReserveN(now, int(min(cost, burst)))
	}
}

// sendCost is the cost of sending n bytes.
func sendCost(n int) time.Duration { return time.Duration(n) * kibCost / 1024 }
