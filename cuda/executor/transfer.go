package executor

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// checkBytes is Check without an allocation where there is no error.
func (ex *Executor) checkBytes(r driver.Result, call, what string, bytes int) error {
	if r == driver.Success {
		return nil
	}
	return ex.API.Check(r, call, what, bytes)
}

// CopyToDevice sends a copy of pinned memory to the device.
func (ex *Executor) CopyToDevice(to driver.Pointer, from unsafe.Pointer, bytes int) error {
	return ex.checkBytes(ex.API.MemcpyHtoD(to, from, uintptr(bytes), ex.Stream), "cuMemcpyHtoDAsync",
		"copying %d bytes to the GPU", bytes)
}

// CopyFromDevice sends a copy of device memory to pinned memory.
func (ex *Executor) CopyFromDevice(to unsafe.Pointer, from driver.Pointer, bytes int) error {
	return ex.checkBytes(ex.API.MemcpyDtoH(to, from, uintptr(bytes), ex.Stream), "cuMemcpyDtoHAsync",
		"copying %d bytes from the GPU", bytes)
}

// CopyWithin sends a copy of device memory to other device memory.
func (ex *Executor) CopyWithin(to, from driver.Pointer, bytes int) error {
	return ex.checkBytes(ex.API.MemcpyDtoD(to, from, uintptr(bytes), ex.Stream), "cuMemcpyDtoDAsync",
		"copying %d bytes within the GPU", bytes)
}

// SetBytes has bytes of the device set to a value.
func (ex *Executor) SetBytes(at driver.Pointer, value uint8, bytes int) error {
	return ex.checkBytes(ex.API.MemsetD8(at, value, uintptr(bytes), ex.Stream), "cuMemsetD8Async",
		"setting %d bytes of the GPU", bytes)
}

// copyNow sends a copy of up to ChunkBytes of any memory, which may be changed at once.
func (ex *Executor) copyNow(to driver.Pointer, bytes []byte) error {
	host, err := ex.AllocBuffer(len(bytes))
	if err != nil {
		return err
	}
	copy(host.Bytes, bytes)
	err = ex.CopyToDevice(to, host.Pointer(), len(bytes))
	ex.putWhenReached(host)
	return err
}

// putWhenReached gives a buffer back once the GPU has completed all work that was sent.
func (ex *Executor) putWhenReached(host *Buffer) {
	if !ex.whenReached(func() { ex.PutBuffer(host) }) {
		ex.PutBuffer(host)
	}
}

// NewBlock returns a block with a copy of bytes, for work that is sent later. Any goroutine but the
// executor may call it.
func (ex *Executor) NewBlock(bytes []byte) (b Block, err error) {
	err = ex.Do(func() (err error) {
		if b, err = ex.Alloc(len(bytes)); err != nil {
			return err
		}
		for at := 0; at < len(bytes) && err == nil; at += ChunkBytes {
			err = ex.copyNow(b.At+driver.Pointer(at), bytes[at:min(at+ChunkBytes, len(bytes))])
		}
		if err != nil {
			ex.PutBlock(b)
		}
		return err
	})
	return b, err
}

// ReadBack returns a copy of up to ChunkBytes of device memory, for which it waits.
func (ex *Executor) ReadBack(at driver.Pointer, n int) ([]byte, error) {
	host, err := ex.AllocBuffer(n)
	if err != nil {
		return nil, err
	}
	defer ex.PutBuffer(host)
	if err := ex.CopyFromDevice(host.Pointer(), at, n); err != nil {
		return nil, err
	}
	if err := ex.Synchronize(); err != nil {
		return nil, err
	}
	return slices.Clone(host.Bytes[:n]), nil
}

// CopyIn copies a region to the device through a buffer, and waits.
func (ex *Executor) CopyIn(s kernels.Region, through *Buffer) error {
	for at := 0; at < len(s.Bytes); at += len(through.Bytes) {
		n := copy(through.Bytes, s.Bytes[at:])
		if err := ex.CopyToDevice(driver.Pointer(s.At)+driver.Pointer(at), through.Pointer(), n); err != nil {
			return err
		}
		if err := ex.Synchronize(); err != nil { // the buffer is used again
			return err
		}
	}
	return nil
}

// CopyOut copies a region from the device through a buffer, and waits.
func (ex *Executor) CopyOut(s kernels.Region, through *Buffer) error {
	for at := 0; at < len(s.Bytes); at += len(through.Bytes) {
		n := min(len(through.Bytes), len(s.Bytes)-at)
		if err := ex.CopyFromDevice(through.Pointer(), driver.Pointer(s.At)+driver.Pointer(at), n); err != nil {
			return err
		}
		if err := ex.Synchronize(); err != nil {
			return err
		}
		copy(s.Bytes[at:], through.Bytes[:n])
	}
	return nil
}

// WithLists copies terms to device memory, as lists, for the work that use sends.
func (ex *Executor) WithLists(use func([]kernels.List) error, terms ...[]kernels.Term) error {
	size := 0
	for _, t := range terms {
		size += 12*len(t) + 8
	}
	host, err := ex.AllocBuffer(size)
	if err != nil {
		return err
	}
	on, err := ex.Alloc(size)
	if err != nil {
		return err
	}
	defer ex.PutBlock(on) // its next use comes later on the stream
	lists := appendLists(host.Bytes[:0:size], on.Address(), terms)
	if err = ex.CopyToDevice(on.At, host.Pointer(), size); err == nil {
		err = use(lists)
	}
	ex.putWhenReached(host)
	return err
}

// appendLists writes lists to b, which is copied to an address later. Each list has the addresses
// of the vectors, then their coefficients.
func appendLists(b []byte, at kernels.Address, terms [][]kernels.Term) []kernels.List {
	lists := make([]kernels.List, len(terms))
	for i, t := range terms {
		lists[i] = kernels.List{V: at + kernels.Address(len(b)), A: at + kernels.Address(len(b)+8*len(t)), Len: len(t)}
		for _, x := range t {
			b = binary.LittleEndian.AppendUint64(b, uint64(x.V))
		}
		for _, x := range t {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x.A))
		}
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
	}
	return lists
}
