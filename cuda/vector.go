package cuda

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// Vector is a vector in the memory of a GPU. Its memory is given back some time after it is no
// longer reachable.
type Vector struct {
	d      *Device
	n      int
	block  block // none where n is 0
	hazard hazard
	scale  atomic.Pointer[lossScale] // of gradients, once a Program of fp16 has written one
}

var _ device.Vector = (*Vector)(nil)

// Len is the number of elements.
func (v *Vector) Len() int { return v.n }

func (v *Vector) address() kernels.Address { return v.block.address() }

func (v *Vector) bytes() uintptr { return uintptr(4 * v.n) }

// NewVector returns a vector of n zeros. Where the GPU has no memory left, [Device.Err] tells of it
// and Run will.
func (d *Device) NewVector(n int) device.Vector {
	v := &Vector{d: d, n: n}
	if n == 0 {
		return v
	}
	o := d.owner
	var err error
	if v.block, err = o.get(4 * n); err != nil {
		o.fail(fmt.Errorf("making a vector of %d numbers: %w", n, err))
		return v
	}
	at, bytes := v.block.at, v.bytes()
	o.send(func() error {
		return o.api.Check(o.api.MemsetD8(at, 0, bytes, o.stream), "cuMemsetD8Async", "clearing a vector")
	}, writing(&v.hazard))
	runtime.AddCleanup(v, o.discard, v.block)
	return v
}

// Write copies src to dst. It panics if the lengths differ.
func (d *Device) Write(dst device.Vector, src []float32) {
	v := d.vector("Write", dst)
	checkLen("Write", "src", len(src), v.n)
	const most = chunk / 4
	for at := 0; at < len(src); at += most {
		part := src[at:min(at+most, len(src))]
		d.upload(v.block.at+driver.Pointer(4*at), 4*len(part), func(b *buffer) { copy(b.float32s(len(part)), part) },
			&v.hazard)
	}
}

// upload copies up to a chunk of bytes to the device: what fill writes to the buffer. on lies in
// what the memory belongs to.
func (d *Device) upload(to driver.Pointer, bytes int, fill func(*buffer), on *hazard) {
	o := d.owner
	if bytes == 0 || o.err() != nil {
		return
	}
	b, err := o.buffer(bytes)
	if err != nil {
		o.fail(err)
		return
	}
	fill(b)
	p := &op{send: func() error {
		return o.api.Check(o.api.MemcpyHtoD(to, b.pointer(), uintptr(bytes), o.stream), "cuMemcpyHtoDAsync",
			"copying %d bytes to the GPU", bytes)
	}, then: func() { o.pinned.give(b) }}
	p.touches = append(p.few[:0], writing(on))
	if bytes <= marchCopy && bytes%4 == 0 {
		p.call = kernels.Copy(kernels.Address(to), b.address(), bytes/4)
	}
	o.submitOp(p)
}

// Read copies src to dst, once all that was sent before is done. It panics if the lengths differ.
// After a failure dst is not a number.
func (d *Device) Read(dst []float32, src device.Vector) {
	v := d.vector("Read", src)
	checkLen("Read", "dst", len(dst), v.n)
	const most = chunk / 4
	var before func()
	for at := 0; at < len(dst); at += most {
		part := dst[at:min(at+most, len(dst))]
		wait := d.download(v.block.at+driver.Pointer(4*at), 4*len(part),
			func(b *buffer) { copy(part, b.float32s(len(part))) }, &v.hazard)
		if before != nil {
			before()
		}
		before = wait
	}
	if before != nil {
		before()
	}
	if d.Err() != nil {
		for i := range dst {
			dst[i] = float32(math.NaN())
		}
	}
}

// download begins to copy up to a chunk of bytes from the device. The result waits for them and
// hands them to take.
func (d *Device) download(from driver.Pointer, bytes int, take func(*buffer), on *hazard) (wait func()) {
	o := d.owner
	if o.err() != nil {
		return func() {}
	}
	b, err := o.buffer(bytes)
	if err != nil {
		o.fail(err)
		return func() {}
	}
	arrived := make(chan struct{})
	o.sendThen(func() error {
		return o.api.Check(o.api.MemcpyDtoH(b.pointer(), from, uintptr(bytes), o.stream), "cuMemcpyDtoHAsync",
			"copying %d bytes from the GPU", bytes)
	}, func() { close(arrived) }, reading(on))
	return func() {
		<-arrived
		take(b)
		o.pinned.give(b)
	}
}

// vector returns v as one of this device, for the operation op.
func (d *Device) vector(op string, v device.Vector) *Vector {
	if x, ok := v.(*Vector); ok && x.d == d {
		return x
	} else if ok {
		panic(fmt.Sprintf("cuda: %s: the vector is of %s, want one of %s", op, x.d.name, d.name))
	}
	panic(fmt.Sprintf("cuda: %s: %T is no vector of this device, want *cuda.Vector", op, v))
}

// checkLen panics if operand what of the operation op has got elements, not want.
func checkLen(op, what string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("cuda: %s: %s has length %d, want %d", op, what, got, want))
	}
}
