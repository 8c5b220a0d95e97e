package cuda

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// The loss scale of fp16: it begins at firstScale, is halved when a gradient is not finite, and doubled after scaleInterval that are. A larger one than
// largestScale gains nothing.
const (
	firstScale    = 1 << 16
	largestScale  = 1 << 24
	scaleGrowth   = 2
	scaleBackoff  = 0.5
	scaleInterval = 2000
)

// LossScale is the dynamic loss scale of a vector of parameters, after the latest run.
type LossScale struct {
	Scale   float64
	Good    int // runs since it last changed
	Skipped int // runs whose gradient was not finite and became 0
}

// lossScale is what a vector of parameters has of it. It belongs to the vector and not to the Program, which many agents use in turn: so what an agent
// computes does not depend on the others.
type lossScale struct {
	block block
	last  atomic.Pointer[LossScale] // as the latest run left it
}

// arrived takes the state as it came from the GPU.
func (s *lossScale) arrived(b []byte) {
	k := kernels.ReadScaler(b)
	s.last.Store(&LossScale{Scale: float64(k.Scale), Good: k.Good, Skipped: k.Skipped})
}

// scalerOf is the loss scale of a vector, a new one where it has none.
func (d *Device) scalerOf(v *Vector) (*lossScale, error) {
	if v.scale != nil {
		return v.scale, nil
	}
	b, err := d.owner.get(kernels.ScalerBytes)
	if err != nil {
		return nil, fmt.Errorf("making room for a loss scale: %w", err)
	}
	runtime.AddCleanup(v, d.owner.discard, b)
	v.scale = &lossScale{block: b}
	first := kernels.Scaler{Scale: firstScale}.Bytes()
	v.scale.arrived(first)
	d.send(b.at, first, v)
	return v.scale, nil
}

// fetch copies the state to a place in a buffer, behind what computes it.
func (s *lossScale) fetch(o *owner, host *buffer, at int) error {
	to := unsafe.Pointer(&host.bytes[at])
	return o.api.Check(o.api.MemcpyDtoH(to, s.block.at, kernels.ScalerBytes, o.stream), "cuMemcpyDtoHAsync", "copying a loss scale from the GPU")
}

// LossScale is that of parameters; ok is false where no Program of fp16 has computed a gradient with them.
func (v *Vector) LossScale() (s LossScale, ok bool) {
	if v.scale == nil {
		return s, false
	}
	return *v.scale.last.Load(), true
}

// send copies bytes to the device, behind all work that was sent before. keep is what the memory belongs to.
func (d *Device) send(to driver.Pointer, bytes []byte, keep any) {
	for at := 0; at < len(bytes); at += chunk {
		part := bytes[at:min(at+chunk, len(bytes))]
		d.upload(to+driver.Pointer(at), len(part), func(b *buffer) { copy(b.bytes, part) }, keep)
	}
}
