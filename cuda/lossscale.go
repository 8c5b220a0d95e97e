package cuda

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// The loss scale of fp16 begins at firstScale. It is halved when a gradient is not finite, and
// doubled after scaleInterval finite ones, up to largestScale, above which it gains nothing.
const (
	firstScale    = 1 << 16
	largestScale  = 1 << 24
	scaleGrowth   = 2
	scaleBackoff  = 0.5
	scaleInterval = 2000
)

// lossScale is the loss scale of a vector of gradients. It belongs to the vector, not to the
// Program, which many agents use in turn: so each agent's results do not depend on the others.
type lossScale struct {
	block executor.Block
	last  atomic.Pointer[device.LossScale] // the scale after the latest run that has ended
	dep   executor.Dependency
}

// arrived takes the state that came from the GPU.
func (s *lossScale) arrived(b []byte) {
	k := kernels.ReadScaler(b)
	s.last.Store(&device.LossScale{Scale: float64(k.Scale), Good: k.Good, Skipped: k.Skipped})
}

// lossScale returns the loss scale of a vector of gradients, a new one where it has none. Only the
// goroutine that writes the vector may call it.
func (v *Vector) lossScale() (*lossScale, error) {
	if s := v.scale.Load(); s != nil {
		return s, nil
	}
	s := &lossScale{}
	first := kernels.Scaler{Scale: firstScale}.Bytes()
	var err error
	if s.block, err = v.d.exec.NewBlock(first); err != nil {
		return nil, fmt.Errorf("allocating a loss scale: %w", err)
	}
	runtime.AddCleanup(v, v.d.exec.Discard, s.block)
	s.arrived(first)
	v.scale.Store(s)
	return s, nil
}

func (s *lossScale) fetch(ex *executor.Executor, host *executor.Buffer) error {
	return ex.CopyFromDevice(host.Pointer(), s.block.At, kernels.ScalerBytes)
}

// LossScale returns the loss scale of a vector of gradients; ok is false where no Program of fp16
// has written one.
func (d *Device) LossScale(grad device.Vector) (s device.LossScale, ok bool) {
	scale := d.vector("LossScale", grad).scale.Load()
	if scale == nil {
		return s, false
	}
	return *scale.last.Load(), true
}

// SetLossScale sets the loss scale of a vector of gradients. It sends nothing where the scale is
// equal already.
func (d *Device) SetLossScale(grad device.Vector, to device.LossScale) {
	v := d.vector("SetLossScale", grad)
	scale, err := v.lossScale()
	if err != nil {
		d.exec.Fail(err)
		return
	}
	if *scale.last.Load() == to {
		return
	}
	scale.last.Store(&to)
	bytes := kernels.Scaler{Scale: float32(to.Scale), Good: to.Good, Skipped: to.Skipped}.Bytes()
	d.upload(scale.block.At, len(bytes), func(b *executor.Buffer) { copy(b.Bytes, bytes) }, &scale.dep)
}
