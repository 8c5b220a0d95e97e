package cuda

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// Vector is a vector in the memory of a GPU. Its memory is reused some time after it has become
// unreachable.
type Vector struct {
	d     *Device
	n     int
	block executor.Block // empty where n is 0
	dep   executor.Dependency
	scale atomic.Pointer[lossScale] // the loss scale of a gradient that a program of fp16 has written, else nil
	// a batch group has computed a gradient at the vector
	grouped atomic.Bool
	branch  atomic.Uint32 // 1 + the number of the branch of gradients that are written to the vector; 0: none yet
}

var _ device.Vector = (*Vector)(nil)

func (v *Vector) Len() int { return v.n }

func (v *Vector) address() kernels.Address {
	if v == nil {
		return 0
	}
	return v.block.Address()
}

func (v *Vector) bytes() int { return 4 * v.n }

// NewVector returns a vector of n zeros. Where the GPU has no memory left, [Device.Err] and later
// Runs return the error.
func (d *Device) NewVector(n int) device.Vector {
	v := &Vector{d: d, n: n}
	if n == 0 {
		return v
	}
	ex := d.exec
	var err error
	if v.block, err = ex.TakeBlock(4 * n); err != nil {
		ex.Fail(fmt.Errorf("making a vector of %d numbers: %w", n, err))
		return v
	}
	at, bytes := v.block.At, v.bytes()
	ex.Enqueue(func() error { return ex.SetBytes(at, 0, bytes) }, executor.Writes(&v.dep))
	runtime.AddCleanup(v, ex.Discard, v.block)
	return v
}

// Write copies src to dst. It panics if the lengths differ.
func (d *Device) Write(dst device.Vector, src []float32) {
	v := d.vector("Write", dst)
	checkLen("Write", "src", len(src), v.n)
	const most = executor.ChunkBytes / 4
	for at := 0; at < len(src); at += most {
		part := src[at:min(at+most, len(src))]
		d.upload(v.block.At+driver.Pointer(4*at), 4*len(part), func(b *executor.Buffer) {
			copy(b.Float32s(len(part)), part)
		}, &v.dep)
	}
}

// megakernelCopyBytes is how many bytes a megakernel copies from host memory at most. Copy engines
// copy more.
const megakernelCopyBytes = 128 << 10

// maxUploads is how many uploads of large buffers wait for the GPU at most. Without a limit, writes
// to a busy GPU would pin as much memory as they copy.
const maxUploads = 8

// isLargeUpload reports whether an upload, or a piece of it, has a large buffer.
func isLargeUpload(bytes int) bool { return bytes > executor.MediumBytes }

// beginUpload waits until an upload of that size may begin. The result ends it.
func (d *Device) beginUpload(bytes int) (end func()) {
	if !isLargeUpload(bytes) {
		return func() {}
	}
	d.uploads <- struct{}{}
	return func() { <-d.uploads }
}

// upload copies up to a chunk of bytes to the device, which fill writes to a buffer. on is the
// dependency of the memory.
func (d *Device) upload(to driver.Pointer, bytes int, fill func(*executor.Buffer), on *executor.Dependency) {
	ex := d.exec
	if bytes == 0 || ex.Err() != nil {
		return
	}
	end := d.beginUpload(bytes)
	b, err := ex.TakeBuffer(bytes)
	if err != nil {
		end()
		ex.Fail(err)
		return
	}
	fill(b)
	p := &executor.Op{Send: func() error {
		return ex.CopyToDevice(to, b.Pointer(), bytes)
	}, Then: func() {
		ex.PutBuffer(b)
		end()
	}}
	p.Writes(on)
	if bytes <= megakernelCopyBytes && bytes%4 == 0 {
		p.Call = kernels.Copy(kernels.Address(to), b.Address(), bytes/4)
	}
	ex.EnqueueOp(p)
}

// Read copies src to dst, after all earlier operations. It panics if the lengths differ. After a
// failure dst is NaN.
func (d *Device) Read(dst []float32, src device.Vector) {
	v := d.vector("Read", src)
	checkLen("Read", "dst", len(dst), v.n)
	const most = executor.ChunkBytes / 4
	var before func()
	for at := 0; at < len(dst); at += most {
		part := dst[at:min(at+most, len(dst))]
		wait := d.download(v.block.At+driver.Pointer(4*at), 4*len(part),
			func(b *executor.Buffer) { copy(part, b.Float32s(len(part))) }, &v.dep)
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

// download starts a copy of up to a chunk of bytes from the device. The result waits for it and
// calls take.
func (d *Device) download(from driver.Pointer, bytes int, take func(*executor.Buffer),
	on *executor.Dependency) (wait func()) {
	ex := d.exec
	if ex.Err() != nil {
		return func() {}
	}
	b, err := ex.TakeBuffer(bytes)
	if err != nil {
		ex.Fail(err)
		return func() {}
	}
	arrived := make(chan struct{})
	send := func() error { return ex.CopyFromDevice(b.Pointer(), from, bytes) }
	ex.EnqueueOp(&executor.Op{Send: send, Then: func() { close(arrived) }}, executor.Reads(on))
	return func() {
		<-arrived
		take(b)
		ex.PutBuffer(b)
	}
}

// vector returns v as a Vector of this device, for the operation op.
func (d *Device) vector(op string, v device.Vector) *Vector {
	if x, ok := v.(*Vector); ok && x.d == d {
		return x
	} else if ok {
		panic(fmt.Sprintf("cuda: %s: the vector is of %s, want one of %s", op, x.d.name, d.name))
	}
	panic(fmt.Sprintf("cuda: %s: the vector is a %T, want *cuda.Vector", op, v))
}

// checkLen panics if an operand of the operation op does not have want elements.
func checkLen(op, what string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("cuda: %s: %s has length %d, want %d", op, what, got, want))
	}
}
