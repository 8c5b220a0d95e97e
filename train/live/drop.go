package live

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// dropSilentPeers periodically drops edges whose other end has been silent for too long.
func (a *Agent) dropSilentPeers(ctx context.Context) {
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
				e.drop(silent)
			}
		}
	}
}

// drop drops the edge, unless it is dropped already.
func (e *edge) drop(silent time.Duration) {
	a := e.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.dropped || a.frozen {
		return
	}
	a.opt.Log.Warn("dropped an agent: it has been silent for too long", zap.Int("peer", e.peer),
		zap.Duration("silent", silent), zap.Int("exchanges", e.dual.N))
	e.dropped, e.inSync = true, false
	a.opt.Algo.Drop(a.state, &e.dual, e.dual.Epoch+1) // also without exchanges: hello tells that the edge starts anew
	if a.reservedBy == e {
		a.reservedBy = nil
	}
	a.notify()
}
