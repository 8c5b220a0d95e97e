package train

import (
	"math"

	"fspda/device"
)

// differentiate writes the gradient of the agent's batch at x to dst and returns the loss. Where
// the batch is taken in parts it is their mean, weighed by size. The first one of a batch is the
// training step, which moves the buffers of batch norm, part by part.
func (a *agent) differentiate(dst, x device.Vector) (loss float64, err error) {
	parts := a.run.setup.Config.Accum
	if parts == 1 {
		return a.differentiatePart(dst, x, a.batch)
	}
	n := a.batch.N()
	size := (n + parts - 1) / parts
	dev := a.dev
	for from := 0; from < n; from += size {
		b := a.batch.Slice(from, min(from+size, n))
		w := float64(b.N()) / float64(n)
		to := dst
		if from > 0 {
			to = a.part
		}
		l, err := a.differentiatePart(to, x, b)
		if err != nil {
			return 0, err
		}
		loss += float64(w * l)
		if from > 0 {
			dev.Combine(dst, device.Term{A: 1, V: dst}, device.Term{A: w, V: a.part})
		} else {
			dev.Combine(dst, device.Term{A: w, V: dst})
		}
	}
	return loss, nil
}

func (a *agent) differentiatePart(dst, x device.Vector, b device.Batch) (float64, error) {
	if gate := a.place.gate; gate != nil {
		gate <- struct{}{}
		defer func() { <-gate }()
	}
	dev, scaled := a.dev.(device.LossScaler)
	if scaled && a.scale.Scale > 0 { // the agent has one, whatever vector it writes to
		dev.SetLossScale(dst, a.scale)
	}
	loss, err := a.computePart(dst, x, b)
	if scaled && err == nil {
		if s, ok := dev.LossScale(dst); ok {
			a.scale = s
		}
	}
	return loss, err
}

func (a *agent) computePart(dst, x device.Vector, b device.Batch) (float64, error) {
	if a.model != nil && a.first {
		return a.model.Step(dst, x, a.norms, b)
	}
	return a.place.Model.Grad(dst, x, b)
}

// grad is Model.Grad of an evaluation, which leaves no gradient out: one that fp16 skips is
// computed again with the smaller scale.
func (pr *probe) grad(b device.Batch) (loss float64, err error) {
	dst := pr.g
	dev, scaled := pr.Device.(device.LossScaler)
	for {
		var before device.LossScale
		if scaled {
			before, _ = dev.LossScale(dst)
		}
		if loss, err = pr.Model.Grad(dst, pr.x, b); err != nil || !scaled {
			return loss, err
		}
		if after, ok := dev.LossScale(dst); !ok || after.Skipped == before.Skipped || after.Scale == before.Scale {
			return loss, nil
		}
	}
}

// clip shortens a gradient that is longer than Config.ClipNorm to that length.
func (a *agent) clip(g device.Vector) {
	limit := a.run.setup.Config.ClipNorm
	if limit == 0 {
		return
	}
	if norm := math.Sqrt(a.dev.Dot(g, g)); norm > limit {
		a.dev.Combine(g, device.Term{A: limit / norm, V: g})
	}
}
