package live

import (
	"context"
	"time"

	"go.uber.org/zap"

	"fspda/device"
)

// joinTimeout is the time for which a joining agent waits for further neighbours after the first
// has answered.
const joinTimeout = 2 * time.Second

// join waits for the neighbours of an agent without history, and starts from the mean of their
// models. An agent restored from a checkpoint, or without neighbours, does not wait, and none waits
// for neighbours that are dropped.
func (a *Agent) join(ctx context.Context) error {
	a.mu.Lock()
	joins := a.joining && len(a.edges) > 0
	a.joining = joins
	a.mu.Unlock()
	if !joins {
		return nil
	}
	var first time.Time
	err := a.await(ctx, joinTimeout/8, func() bool {
		answers, dropped := 0, 0
		for _, e := range a.edges {
			switch {
			case e.answered:
				answers++
			case e.dropped:
				dropped++
			}
		}
		if answers > 0 && first.IsZero() {
			first = time.Now()
		}
		return answers+dropped == len(a.edges) || answers > 0 && time.Since(first) >= joinTimeout
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adoptMean()
	a.joining = false
	return nil
}

// adoptMean sets the agent to the mean of the received models, at the latest of their times. The
// caller holds the lock.
func (a *Agent) adoptMean() {
	var xs, buffers []device.Term
	t := 0
	for _, e := range a.edges {
		if e.model != nil {
			t = max(t, e.model.t)
			xs = append(xs, a.term(e.model.values))
			if a.opt.Buffers != nil {
				buffers = append(buffers, a.term(e.model.buffers))
			}
		}
		e.model = nil
	}
	if len(xs) == 0 {
		return
	}
	a.opt.Log.Info("joined the run", zap.Int("models", len(xs)), zap.Int("iteration", t))
	a.dev.Do(device.Combine(a.state.X, share(xs)...))
	if a.opt.Buffers != nil {
		a.dev.Do(device.Combine(a.opt.Buffers, share(buffers)...))
	}
	a.clock.T, a.clock.Away = t, t
}

func (a *Agent) term(values []float32) device.Term {
	v := a.dev.NewVector(len(values))
	a.dev.Write(v, values)
	return device.Term{V: v}
}

// share gives all terms the same weight.
func share(terms []device.Term) []device.Term {
	for i := range terms {
		terms[i].A = 1 / float64(len(terms))
	}
	return terms
}

// read copies a vector to the host.
func (a *Agent) read(v device.Vector) []float32 {
	if v == nil {
		return nil
	}
	host := make([]float32, v.Len())
	a.dev.Read(host, v)
	return host
}
