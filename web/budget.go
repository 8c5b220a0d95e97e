package web

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What things cost besides the work of the handler, in processor time: what the net package and the
// kernel take, with some to spare.
const (
	costOfConnection = 60 * time.Microsecond  // to accept it, and to close it again
	costOfRequest    = 100 * time.Microsecond // to read it and to answer
	costOfEvent      = 20 * time.Microsecond  // to write one into a stream
	costOfBytes      = time.Microsecond       // for each KiB that is sent
)

// savedUp is how much a budget holds at most: enough for a browser to load the page with a dozen
// long runs at once.
const savedUp = 100 * time.Millisecond

// budget is the processor time that strangers may cost. Whoever wants some waits for their turn and
// until no debt is left, pays what it came to afterwards, and leaves a debt for the next to wait
// for: so however many ask for whatever, the program they ask spends no more than its share.
type budget struct {
	rate float64       // seconds of processor time a second; 0 is no limit
	turn chan struct{} // holds one while somebody waits or works; all others wait here, which costs nothing

	mu   sync.Mutex
	left time.Duration // below 0 it is a debt
	at   time.Time     // when left was right
}

// newBudget returns a budget of a share of all processors that the program uses; 0 is no limit.
func newBudget(share float64) *budget {
	return &budget{rate: share * float64(runtime.GOMAXPROCS(0)), turn: make(chan struct{}, 1), left: savedUp,
		at: time.Now()}
}

// do calls work, which must not wait for a reader, and charges the processor time it took and what
// else it costs. It returns false, without having called it, if ctx ends before it is its turn.
func (b *budget) do(ctx context.Context, cost time.Duration, work func()) bool {
	if b.rate <= 0 {
		work()
		return true
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-b.turn }()
	if !b.wait(ctx) {
		return false
	}
	b.charge(cost+processorTime(work), time.Now())
	return true
}

// spend is do without work.
func (b *budget) spend(ctx context.Context, cost time.Duration) bool {
	return b.do(ctx, cost, func() {})
}

// wait waits until there is no debt, or returns false if ctx ends before.
func (b *budget) wait(ctx context.Context) bool {
	for {
		debt := b.debt(time.Now())
		if debt <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(debt)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// debt is how long it takes until there is none.
func (b *budget) debt(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn(now)
	return time.Duration(float64(-b.left) / b.rate)
}

func (b *budget) charge(cost time.Duration, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn(now)
	b.left -= cost
}

// earn adds what came in since.
func (b *budget) earn(now time.Time) {
	if now.Before(b.at) {
		return
	}
	b.left = min(savedUp, b.left+time.Duration(b.rate*float64(now.Sub(b.at))))
	b.at = now
}

// costOf is what it costs to send so many bytes.
func costOf(bytes int) time.Duration { return time.Duration(bytes) * costOfBytes / 1024 }
