// Package clip shortens the gradients of an agent, and messages that it receives.
package clip

import (
	"math"

	"fspda/device"
	"fspda/train/config"
)

// Clipper shortens the gradients of one agent as PyTorch's clip_grad_norm_ does: by the factor
// limit/(norm + 1e-6) where that is below 1, with the norm of the whole gradient in float64, before
// weight decay is added.
type Clipper interface {
	// Clip reports whether it shortened the gradient v at x.
	Clip(v, x device.Vector) bool
}

// New makes the Clipper of a run on a device.
func New(s *config.Setup, dev device.Device) Clipper {
	limit := s.Config.ClipNorm
	switch {
	case limit == 0:
		return none{}
	case !s.ClipsApart():
		return plain{dev, limit}
	}
	c := &decayed{plain: plain{dev, limit}, decay: s.Config.L2(), loss: dev.NewVector(s.Dim)}
	if n := len(s.Undecayed); n > 0 {
		c.undecayed, c.few = dev.NewIndex(s.Undecayed, nil), dev.NewVector(n)
	}
	return c
}

// none leaves gradients as they are.
type none struct{}

func (none) Clip(_, _ device.Vector) bool { return false }

// plain clips gradients without an L2 term.
type plain struct {
	dev   device.Device
	limit float64
}

// factor returns the number by which clipping multiplies a gradient of the loss.
func (c plain) factor(loss device.Vector) float64 {
	return c.limit / (math.Sqrt(device.InnerProduct(c.dev, loss, loss)) + 1e-6)
}

func (c plain) Clip(v, _ device.Vector) bool {
	factor := c.factor(v)
	if !(factor < 1) {
		return false
	}
	c.dev.Do(device.Combine(v, device.Term{A: factor, V: v}))
	return true
}

// decayed clips the loss part of gradients with an L2 term.
type decayed struct {
	plain
	decay     float64
	loss      device.Vector // the gradient without the L2 term
	undecayed device.Index  // coordinates without L2 term; nil: none
	few       device.Vector // the model at the undecayed coordinates
}

func (c *decayed) Clip(v, x device.Vector) bool {
	c.dev.Do(device.Combine(c.loss, device.Term{A: 1, V: v}, device.Term{A: -c.decay, V: x}))
	if c.undecayed != nil {
		c.dev.Do(device.Gather(c.few, x, c.undecayed))
		c.dev.Do(device.ScatterAdd(c.loss, device.SparseTerm{A: c.decay, V: c.few, Idx: c.undecayed}))
	}
	factor := c.factor(c.loss)
	if !(factor < 1) {
		return false
	}
	c.dev.Do(device.Combine(v, device.Term{A: 1, V: v}, device.Term{A: factor - 1, V: c.loss}))
	return true
}
