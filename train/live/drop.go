package live

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// watch drops edges whose other end has been silent for too long.
func (a *Agent) watch(ctx context.Context) {
	t := time.NewTicker(min(time.Second, a.opt.Timeouts.Drop/8))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		for _, e := range a.edges {
			if silent := a.opt.Network.SilentFor(e.peer); silent > a.opt.Timeouts.Drop {
				e.lose(silent)
			}
		}
	}
}

// lose drops the edge, once.
func (e *edge) lose(silent time.Duration) {
	a := e.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.lost || a.frozen {
		return
	}
	a.opt.Log.Warn("dropped an agent: it has been silent for too long", zap.Int("peer", e.peer),
		zap.Duration("silent", silent), zap.Int("exchanges", e.dual.N))
	e.lost, e.settled = true, false
	if e.dual.N > 0 {
		a.opt.Algo.Drop(a.state, &e.dual, e.dual.Epoch+1)
	}
	if a.busy == e {
		a.busy = nil
	}
	a.tell()
}
