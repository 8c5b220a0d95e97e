package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"fspda/data"
	"fspda/device"
	"fspda/train/clip"
	"fspda/train/snapshot"
)

// An agent has at most maxPending pending losses, so that a GPU may run several iterations of a
// small network in one launch while the next ones are prepared; or maxPendingLarge if a batch holds
// more than largeBatch numbers: batches in flight take memory.
const (
	maxPending      = 16
	maxPendingLarge = 1
	largeBatch      = 1 << 20
)

// gradients computes the gradients of one agent. A gradient is started; its loss is read when more
// than depth losses are pending. With depth 0 that is at once.
//
// Invariant: len(pending) <= depth between two gradients.
type gradients struct {
	*core
	batches
	depth   int
	pending []pendingLoss // pending losses, oldest first
	buffers device.Vector // buffers of the agent's batch norm; nil: the network has none
	part    device.Vector // gradient of a micro-batch; nil unless batches are split
	clipper clip.Clipper
	// the algorithm clips the mean of the agents' gradients
	clipsMean bool
	count     int             // gradients so far
	clipped   int             // number of these that were shortened
	meter     snapshot.Losses // losses since the last row

	scaler device.LossScaler
	scale  device.LossScale // loss scale after the latest gradient whose loss was read
	scaled device.Vector    // the vector that holds the loss scale while losses are pending
}

// pendingLoss is the loss of a gradient that was started.
type pendingLoss struct {
	t     int
	first bool // this batch's first gradient: the training step
	wait  func() (float64, error)
}

// init sets the gradients of an agent up. overlap allows losses to be pending.
func (g *gradients) init(overlap bool) {
	s, m := g.run.setup, g.worker.Model
	g.scaler = unscaled{}
	if n := s.BufferLen(); n > 0 {
		g.buffers = g.dev.NewVector(n)
		g.dev.Write(g.buffers, m.InitBuffers())
	}
	if s.Config.Accum > 1 {
		g.part = g.dev.NewVector(s.Dim)
	}
	g.clipper = clip.New(s, g.dev)
	if g.clipsMean = s.Traits.ClipsMean; g.clipsMean && s.Config.ClipNorm > 0 {
		g.round.Clip = g.clip
	}
	if dev := g.dev.Features().Scaler; dev != nil && s.Config.Precision == "fp16" {
		g.scaler = dev
	}
	if !m.Async() || !overlap || s.Config.ClipNorm > 0 || s.Config.Accum > 1 {
		return
	}
	g.depth = maxPending
	if s.BatchSize()*s.Set.Features() > largeBatch {
		g.depth = maxPendingLarge
	}
}

// grad is Round.Grad: the gradient of this iteration's batch at any point.
func (g *gradients) grad(dst, x device.Vector) error {
	if err := g.take(); err != nil {
		return err
	}
	begin := time.Now()
	wait, err := g.start(dst, x)
	if err != nil {
		return err
	}
	g.pending = append(g.pending, pendingLoss{g.round.T, g.first, wait})
	g.first = false
	if err := g.drain(g.depth); err != nil {
		return err
	}
	if err := g.fillGradientTime(g.ctx, begin); err != nil {
		return err
	}
	if !g.clipsMean {
		g.clip(dst, x)
	}
	g.clock.Gradient(g.count)
	g.count++
	g.weigh(dst)
	return nil
}

// drain reads losses, oldest first, until at most n are pending.
func (g *gradients) drain(n int) error {
	for len(g.pending) > n {
		p := g.pending[0]
		g.pending = g.pending[:copy(g.pending, g.pending[1:])]
		loss, err := p.wait()
		if err != nil {
			return fmt.Errorf("train: gradient of agent %d in iteration %d: %w", g.id, p.t, err)
		}
		if err := g.check(loss, p.t); err != nil {
			return err
		}
		g.run.live.gradient(g.id, loss)
		if p.first {
			g.meter.Add(loss)
		}
	}
	if len(g.pending) == 0 {
		g.readScale()
	}
	return nil
}

// discard waits for all pending losses and ignores them.
func (g *gradients) discard() {
	for _, p := range g.pending {
		_, _ = p.wait()
	}
	g.pending = nil
}

// check returns a DivergedError if a loss of iteration t is above the limit, or NaN.
func (g *gradients) check(loss float64, t int) error {
	if !(math.Abs(loss) <= lossLimit) {
		return &DivergedError{Agent: g.id, T: t, Loss: loss}
	}
	return nil
}

// start starts the gradient of the agent's batch at x. A batch that is split into micro-batches
// gives their mean, weighted by size, which is finished when start returns. The first gradient of a
// batch is the training step, which updates the batch norm's buffers, micro-batch by micro-batch.
func (g *gradients) start(dst, x device.Vector) (wait func() (float64, error), err error) {
	parts := g.run.setup.Config.Accum
	if parts == 1 {
		return g.startPart(dst, x, g.batch)
	}
	n := g.batch.N()
	size := (n + parts - 1) / parts
	total := 0.0
	for from := 0; from < n; from += size {
		b := g.batch.Slice(from, min(from+size, n))
		w := float64(b.N()) / float64(n)
		to := dst
		if from > 0 {
			to = g.part
		}
		wait, err := g.startPart(to, x, b)
		if err != nil {
			return nil, err
		}
		loss, err := wait()
		if err != nil {
			return func() (float64, error) { return 0, err }, nil
		}
		g.readScale()
		total += float64(w * loss)
		if from > 0 {
			g.dev.Do(device.Combine(dst, device.Term{A: 1, V: dst}, device.Term{A: w, V: g.part}))
		} else {
			g.dev.Do(device.Combine(dst, device.Term{A: w, V: dst}))
		}
	}
	return func() (float64, error) { return total, nil }, nil
}

// startPart starts the gradient of examples of the batch.
func (g *gradients) startPart(dst, x device.Vector, b device.Batch) (wait func() (float64, error), err error) {
	if err := g.writeScale(dst); err != nil {
		return nil, err
	}
	g.worker.gate <- struct{}{}
	defer func() { <-g.worker.gate }()
	var buffers device.Vector
	if g.first {
		buffers = g.buffers
	}
	return g.worker.Model.StartGrad(dst, x, buffers, b), nil
}

// unscaled is the LossScaler of gradients that are not scaled.
type unscaled struct{}

func (unscaled) LossScale(device.Vector) (s device.LossScale, ok bool) { return s, false }
func (unscaled) SetLossScale(device.Vector, device.LossScale)          {}

// writeScale gives the vector that receives the next gradient the agent's loss scale. While losses
// are pending the device updates the scale in that vector from gradient to gradient; another vector
// gets it after all pending losses were read.
func (g *gradients) writeScale(dst device.Vector) error {
	if g.scaler == (unscaled{}) || dst == g.scaled && len(g.pending) > 0 {
		return nil
	}
	if err := g.drain(0); err != nil {
		return err
	}
	if g.scale.Scale > 0 {
		g.scaler.SetLossScale(dst, g.scale)
	}
	g.scaled = dst
	return nil
}

// readScale reads the agent's loss scale back from the vector that holds it.
func (g *gradients) readScale() {
	if g.scaled == nil {
		return // no gradient was started yet
	}
	if s, ok := g.scaler.LossScale(g.scaled); ok {
		g.scale = s
	}
}

// clip shortens a gradient at x whose norm exceeds the limit of the run.
func (g *gradients) clip(v, x device.Vector) {
	if g.clipper.Clip(v, x) {
		g.clipped++
	}
}

// weigh multiplies a gradient by the weight of the agent's data in the objective.
func (g *gradients) weigh(v device.Vector) {
	if scale := g.run.setup.GradientScale(g.id); scale != 1 {
		g.dev.Do(device.Combine(v, device.Term{A: scale, V: v}))
	}
}

// fillGradientTime waits until a gradient that began at begin has taken Config.GradientTime, times
// the agent's slowness.
func (g *gradients) fillGradientTime(ctx context.Context, begin time.Time) error {
	s := g.run.setup
	if s.Config.GradientTime == 0 {
		return nil
	}
	t := time.NewTimer(seconds(s.Config.GradientTime*s.ComputeTimes.Mean[g.id]) - time.Since(begin))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// batches is an agent's sequence of batches.
type batches struct {
	loader *data.Loader
	batch  device.Batch
	taken  bool // batch holds this iteration's examples
	first  bool // the next gradient is the first one of this batch: the training step
}

// take loads this iteration's batch unless it is loaded.
func (b *batches) take() error {
	if b.taken {
		return nil
	}
	next, err := b.loader.Next()
	if err != nil {
		return err
	}
	b.batch, b.taken, b.first = next, true, true
	return nil
}

// release is Round.NextBatch: it returns the batch to the loader.
func (b *batches) release() {
	if b.taken {
		b.loader.Release(b.batch)
		b.taken = false
	}
}
