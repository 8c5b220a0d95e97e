package snapshot

import "context"

// Circulating is the number of snapshots of an agent that a filled Pool holds. When all are on
// their way to an evaluation or a disk, the agent waits.
const Circulating = 2

// Pool holds the free snapshots of an agent.
type Pool struct {
	free chan *Snapshot
	// Waits is called while Acquire waits, and returns a function that is called when it has waited; nil:
	// nothing is called.
	Waits func() (over func())
	// Returns is called before a snapshot is returned; nil: nothing is called.
	Returns func(*Snapshot)
}

// NewPool makes an empty pool with room for limit snapshots.
func NewPool(limit int) *Pool { return &Pool{free: make(chan *Snapshot, limit)} }

// Fill puts the circulating snapshots into the pool.
func (p *Pool) Fill(alloc func() *Snapshot) {
	for range Circulating {
		p.free <- alloc()
	}
}

// Acquire takes a snapshot. When ctx is canceled it returns its cause.
func (p *Pool) Acquire(ctx context.Context) (*Snapshot, error) {
	if p.Waits != nil {
		defer p.Waits()()
	}
	select {
	case sn := <-p.free:
		return sn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TryAcquire takes a snapshot, or allocates one if none is free.
func (p *Pool) TryAcquire(alloc func() *Snapshot) *Snapshot {
	select {
	case sn := <-p.free:
		return sn
	default:
		return alloc()
	}
}

// Lend puts one snapshot into the pool, whose vectors are the agent's own. The agent must not change
// them before AwaitReturn says so.
func (p *Pool) Lend(sn *Snapshot) { p.free <- sn }

// AwaitReturn waits until the lent snapshot has been released. When ctx is canceled it returns its
// cause.
func (p *Pool) AwaitReturn(ctx context.Context) error {
	sn, err := p.Acquire(ctx)
	if err == nil {
		p.Release(sn)
	}
	return err
}

// Release returns a snapshot. It panics if the pool is full.
func (p *Pool) Release(sn *Snapshot) {
	if p.Returns != nil {
		p.Returns(sn)
	}
	select {
	case p.free <- sn:
	default:
		panic("snapshot: more snapshots released than the pool has room for")
	}
}
