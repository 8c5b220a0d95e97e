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
	d     *Device
	n     int
	block block // none where n is 0
	dep   dependency
	scale atomic.Pointer[lossScale] // of gradients, once a Program of fp16 has written one
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
	ex := d.exec
	var err error
	if v.block, err = ex.allocFrom(4 * n); err != nil {
		ex.fail(fmt.Errorf("making a vector of %d numbers: %w", n, err))
		return v
	}
	at, bytes := v.block.at, v.bytes()
	ex.enqueue(func() error {
		return ex.api.Check(ex.api.MemsetD8(at, 0, bytes, ex.stream), "cuMemsetD8Async", "clearing a vector")
	}, writes(&v.dep))
	runtime.AddCleanup(v, ex.discard, v.block)
	return v
}

// Write copies src to dst. It panics if the lengths differ.
func (d *Device) Write(dst device.Vector, src []float32) {
	v := d.vector("Write", dst)
	checkLen("Write", "src", len(src), v.n)
	const most = chunkBytes / 4
	for at := 0; at < len(src); at += most {
		part := src[at:min(at+most, len(src))]
		d.upload(v.block.at+driver.Pointer(4*at), 4*len(part), func(b *buffer) { copy(b.float32s(len(part)), part) },
			&v.dep)
	}
}

// upload copies up to a chunk of bytes to the device: what fill writes to the buffer. on lies in
// what the memory belongs to.
func (d *Device) upload(to driver.Pointer, bytes int, fill func(*buffer), on *dependency) {
	ex := d.exec
	if bytes == 0 || ex.err() != nil {
		return
	}
	b, err := ex.takeBuffer(bytes)
	if err != nil {
		ex.fail(err)
		return
	}
	fill(b)
	p := &op{send: func() error {
		return ex.api.Check(ex.api.MemcpyHtoD(to, b.pointer(), uintptr(bytes), ex.stream), "cuMemcpyHtoDAsync",
			"copying %d bytes to the GPU", bytes)
	}, then: func() { ex.pinned.put(b) }}
	p.accesses = append(p.accessArray[:0], writes(on))
	if bytes <= megakernelCopyBytes && bytes%4 == 0 {
		p.call = kernels.Copy(kernels.Address(to), b.address(), bytes/4)
	}
	ex.enqueueOp(p)
}

// Read copies src to dst, once all that was sent before is done. It panics if the lengths differ.
// After a failure dst is not a number.
func (d *Device) Read(dst []float32, src device.Vector) {
	v := d.vector("Read", src)
	checkLen("Read", "dst", len(dst), v.n)
	const most = chunkBytes / 4
	var before func()
	for at := 0; at < len(dst); at += most {
		part := dst[at:min(at+most, len(dst))]
		wait := d.download(v.block.at+driver.Pointer(4*at), 4*len(part),
			func(b *buffer) { copy(part, b.float32s(len(part))) }, &v.dep)
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
func (d *Device) download(from driver.Pointer, bytes int, take func(*buffer), on *dependency) (wait func()) {
	ex := d.exec
	if ex.err() != nil {
		return func() {}
	}
	b, err := ex.takeBuffer(bytes)
	if err != nil {
		ex.fail(err)
		return func() {}
	}
	arrived := make(chan struct{})
	ex.enqueueThen(func() error {
		return ex.api.Check(ex.api.MemcpyDtoH(b.pointer(), from, uintptr(bytes), ex.stream), "cuMemcpyDtoHAsync",
			"copying %d bytes from the GPU", bytes)
	}, func() { close(arrived) }, reads(on))
	return func() {
		<-arrived
		take(b)
		ex.pinned.put(b)
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
