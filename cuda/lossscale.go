package cuda

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// The loss scale of fp16: it begins at firstScale, is halved when a gradient is not finite, and
// doubled after scaleInterval that are. A larger one than largestScale gains nothing.
const (
	firstScale    = 1 << 16
	largestScale  = 1 << 24
	scaleGrowth   = 2
	scaleBackoff  = 0.5
	scaleInterval = 2000
)

// lossScale is what a vector of gradients has of it. It belongs to the vector and not to the
// Program, which many agents use in turn: so what an agent computes does not depend on the others.
type lossScale struct {
	block executor.Block
	last  atomic.Pointer[device.LossScale] // as the latest run left it
	dep   executor.Dependency
}

// arrived takes the state as it came from the GPU.
func (s *lossScale) arrived(b []byte) {
	k := kernels.ReadScaler(b)
	s.last.Store(&device.LossScale{Scale: float64(k.Scale), Good: k.Good, Skipped: k.Skipped})
}

// lossScale is that of a vector which a gradient is written to, a new one where it has none. It is
// called by whoever writes the vector.
func (v *Vector) lossScale() (*lossScale, error) {
	if s := v.scale.Load(); s != nil {
		return s, nil
	}
	s := &lossScale{}
	first := kernels.Scaler{Scale: firstScale}.Bytes()
	var err error
	if s.block, err = v.d.exec.NewBlock(first); err != nil {
		return nil, fmt.Errorf("making room for a loss scale: %w", err)
	}
	runtime.AddCleanup(v, v.d.exec.Discard, s.block)
	s.arrived(first)
	v.scale.Store(s)
	return s, nil
}

// fetch copies the state to a place in a buffer, behind what computes it.
func (s *lossScale) fetch(ex *executor.Executor, host *executor.Buffer, at int) error {
	to := unsafe.Pointer(&host.Bytes[at])
	return ex.CopyFromDevice(to, s.block.At, kernels.ScalerBytes)
}

// LossScale is that of a vector of gradients; ok is false where no Program of fp16 has written one.
func (d *Device) LossScale(grad device.Vector) (s device.LossScale, ok bool) {
	scale := d.vector("LossScale", grad).scale.Load()
	if scale == nil {
		return s, false
	}
	return *scale.last.Load(), true
}

// SetLossScale sets that of a vector of gradients. Nothing is sent where it is so already.
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

var _ device.LossScaler = (*Device)(nil)
