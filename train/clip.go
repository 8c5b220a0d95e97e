package train

import (
	"math"

	"fspda/device"
	"fspda/train/config"
)

// clipper shortens the gradients of one agent as PyTorch's clip_grad_norm_ does: by the factor
// limit/(norm + 1e-6) where that is below 1, with the norm of the whole gradient in float64, before
// weight decay is added.
type clipper interface {
	// clip reports whether it shortened the gradient v at x.
	clip(v, x device.Vector) bool
}

// newClipper makes the clipper of a run on a device.
func newClipper(s *config.Setup, dev device.Device) clipper {
	limit := s.Config.ClipNorm
	switch {
	case limit == 0:
		return noClipper{}
	case !s.ClipsApart():
		return plainClipper{dev, limit}
	}
	c := &l2Clipper{plainClipper: plainClipper{dev, limit}, decay: s.Config.L2(), loss: dev.NewVector(s.Dim)}
	if n := len(s.Undecayed); n > 0 {
		c.undecayed, c.few = dev.NewIndex(s.Undecayed, nil), dev.NewVector(n)
	}
	return c
}

// noClipper leaves gradients as they are.
type noClipper struct{}

func (noClipper) clip(_, _ device.Vector) bool { return false }

// plainClipper clips gradients without an L2 term.
type plainClipper struct {
	dev   device.Device
	limit float64
}

// factor returns the number by which clipping multiplies a gradient of the loss.
func (c plainClipper) factor(loss device.Vector) float64 {
	return c.limit / (math.Sqrt(device.InnerProduct(c.dev, loss, loss)) + 1e-6)
}

func (c plainClipper) clip(v, _ device.Vector) bool {
	factor := c.factor(v)
	if !(factor < 1) {
		return false
	}
	c.dev.Do(device.Combine(v, device.Term{A: factor, V: v}))
	return true
}

// l2Clipper clips the loss part of gradients with an L2 term.
type l2Clipper struct {
	plainClipper
	decay     float64
	loss      device.Vector // the gradient without the L2 term
	undecayed device.Index  // coordinates without L2 term; nil: none
	few       device.Vector // the model at the undecayed coordinates
}

func (c *l2Clipper) clip(v, x device.Vector) bool {
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
