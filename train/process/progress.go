package process

import (
	"context"
	"sync"
)

// progress is a number that grows, and that goroutines can wait for.
type progress struct {
	mu *sync.Mutex
	on *sync.Cond
	at *int
}

func newProgress() progress {
	mu := new(sync.Mutex)
	return progress{mu: mu, on: sync.NewCond(mu), at: new(int)}
}

// reach sets it to at least n.
func (p progress) reach(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.at = max(*p.at, n)
	p.on.Broadcast()
}

// wait waits until it is at least n. It returns false if ctx is canceled before.
func (p progress) wait(ctx context.Context, n int) bool {
	defer context.AfterFunc(ctx, func() { p.reach(0) })() // wakes the waiting
	p.mu.Lock()
	defer p.mu.Unlock()
	for *p.at < n && ctx.Err() == nil {
		p.on.Wait()
	}
	return *p.at >= n
}
