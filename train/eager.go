package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"fspda/device"
)

// Eager is a Model whose gradients need not be waited for: an agent goes on with vectors that the
// device has still to compute, and looks at the losses later. So a GPU never waits for the host,
// and gradients of several agents go to it together.
type Eager interface {
	Model
	// Eager tells whether the device can do so.
	Eager() bool
	// Begin is Grad, or Step where buffers is not nil, which returns as soon as the batch may be
	// written to again. wait waits for the loss; it is to be called once.
	Begin(dst, x, buffers device.Vector, b device.Batch) (wait func() (loss float64, err error))
}

// mostOwed is how many losses an agent has still to look at, at most, and mostOwedLarge where
// batches are so large that more of them on their way would be memory wasted.
const (
	mostOwed      = 4
	mostOwedLarge = 1
	largeBatch    = 1 << 20 // numbers
)

// owed is a gradient whose loss is still to be looked at.
type owed struct {
	t     int
	first bool
	wait  func() (float64, error)
}

// eagerModel is the agent's model where its gradients are not waited for, or nil.
func (a *agent) eagerModel() Eager {
	m, ok := a.place.Model.(Eager)
	c := a.run.setup.Config
	if !ok || !m.Eager() || c.ClipNorm > 0 || c.Accum > 1 || a.run.line != nil || a.run.setup.RealTime() {
		return nil
	}
	return m
}

// begin is grad without its end.
func (a *agent) begin(dst, x device.Vector) error {
	begun := time.Now()
	if err := a.scaleFor(dst); err != nil {
		return err
	}
	var norms device.Vector
	if a.model != nil && a.first {
		norms = a.norms
	}
	if gate := a.place.gate; gate != nil {
		gate <- struct{}{}
	}
	a.owed = append(a.owed, owed{a.round.T, a.first, a.eager.Begin(dst, x, norms, a.batch)})
	if gate := a.place.gate; gate != nil {
		<-gate
	}
	a.first = false
	if err := a.linger(a.ctx, begun); err != nil {
		return err
	}
	a.count(dst)
	most := mostOwed
	if a.batch.N()*a.run.setup.Set.Features() > largeBatch {
		most = mostOwedLarge
	}
	return a.look(most)
}

// look looks at losses, the oldest first, until no more than left are owed.
func (a *agent) look(left int) error {
	for len(a.owed) > left {
		o := a.owed[0]
		a.owed = a.owed[:copy(a.owed, a.owed[1:])]
		loss, err := o.wait()
		if err != nil {
			return fmt.Errorf("train: gradient of agent %d in iteration %d: %w", a.id, o.t, err)
		}
		if !(math.Abs(loss) <= lossLimit) { // NaN too
			return &DivergedError{Agent: a.id, T: o.t, Loss: loss}
		}
		a.run.opt.Watch.gradient(a.id, loss)
		if o.first {
			a.meter.add(loss)
		}
	}
	if dev, ok := a.dev.(device.LossScaler); ok && a.scaled != nil && len(a.owed) == 0 {
		if s, ok := dev.LossScale(a.scaled); ok {
			a.scale = s
		}
	}
	return nil
}

// scaleFor sees to it that the vector which the next gradient goes to has the agent's loss scale,
// where gradients have one. It moves there from gradient to gradient, and nobody waits for it;
// another vector gets it when the gradients that are owed have told what it is.
func (a *agent) scaleFor(dst device.Vector) error {
	dev, ok := a.dev.(device.LossScaler)
	if !ok || a.run.setup.Config.Precision != "fp16" || dst == a.scaled {
		return nil
	}
	if err := a.look(0); err != nil {
		return err
	}
	if a.scale.Scale > 0 {
		dev.SetLossScale(dst, a.scale)
	}
	a.scaled = dst
	return nil
}

// lookBack ends an agent's walk: what it owes is looked at, since it may have diverged before
// whatever has stopped it.
func (a *agent) lookBack(ctx context.Context, err error) error {
	late := a.look(0)
	for _, o := range a.owed {
		_, _ = o.wait() // all that counts came before
	}
	a.owed = nil
	var d *DivergedError
	switch {
	case errors.As(late, &d):
		a.run.diverged(d)
	case err == nil && ctx.Err() == nil:
		return late
	}
	return err
}
