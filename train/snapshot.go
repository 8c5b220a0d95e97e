package train

import (
	"context"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/simnet"
)

// snapshot is a copy of an agent at the head of an iteration.
type snapshot struct {
	agent, t   int
	dev        device.Device // of the vectors
	eval, save bool
	x          device.Vector
	aux        []device.Vector // as named by Algorithm.Aux
	buffers    device.Vector   // of batch norm; nil: the network has none
	meter      meter
	ledger     dist.Ledger
	grads      int
	decodes    dist.DecodeStats
	scale      device.LossScale
	time       float64               // virtual
	clock      simnet.ClockState     // to be saved
	lines      []byte                // to be saved: state of the streams between processes
	live       *liveRecord           // to be saved: of a run in real time
	duals      map[int]device.Vector // to be saved: of its edges, by peer
	missing    bool                  // a placeholder for the snapshot of an agent that is absent
}

func newSnapshot(dev device.Device, s *algo.State, buffers int) *snapshot {
	sn := &snapshot{dev: dev, x: dev.NewVector(s.X.Len())}
	if buffers > 0 {
		sn.buffers = dev.NewVector(buffers)
	}
	for range s.Aux {
		sn.aux = append(sn.aux, dev.NewVector(s.X.Len()))
	}
	return sn
}

// snapshotPool holds the free snapshots of an agent. Two may be on their way to the collector; one
// more is made when the run diverges.
type snapshotPool struct{ free chan *snapshot }

// circulating is the number of snapshots per agent before the collector must release one.
const circulating = 2

// newSnapshotPool makes an empty pool with room for limit snapshots.
func newSnapshotPool(limit int) *snapshotPool {
	return &snapshotPool{free: make(chan *snapshot, limit)}
}

// fill puts the circulating snapshots into the pool.
func (p *snapshotPool) fill(alloc func() *snapshot) {
	for range circulating {
		p.free <- alloc()
	}
}

// acquire takes a snapshot. When ctx is canceled it returns its cause.
func (p *snapshotPool) acquire(ctx context.Context) (*snapshot, error) {
	select {
	case sn := <-p.free:
		return sn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tryAcquire takes a snapshot, or allocates one if none is free.
func (p *snapshotPool) tryAcquire(alloc func() *snapshot) *snapshot {
	select {
	case sn := <-p.free:
		return sn
	default:
		return alloc()
	}
}

// release returns a snapshot.
func (p *snapshotPool) release(sn *snapshot) { p.free <- sn }
