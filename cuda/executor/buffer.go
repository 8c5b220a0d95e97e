package executor

import (
	"fmt"
	"sync"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// Pinned buffers have one of three sizes, in bytes.
const (
	smallBytes  = 16 << 10
	MediumBytes = 256 << 10 // the inputs of a batch group; a command list
	// a piece of a vector: large enough for full speed, small enough to keep a few
	ChunkBytes = 4 << 20
)

var bufferSizes = [...]int{smallBytes, MediumBytes, ChunkBytes}

// bufferClass returns the smallest size of at least n bytes, as an index of bufferSizes.
func bufferClass(n int) int {
	for class, size := range bufferSizes {
		if n <= size {
			return class
		}
	}
	panic(fmt.Sprintf("cuda: a buffer of %d bytes, want %d at most", n, ChunkBytes))
}

// Buffer is pinned host memory, which the GPU reads and writes at the host's addresses. It belongs
// to the goroutine that took it, and to the GPU while work that uses it is pending.
type Buffer struct {
	Bytes []byte
	class int
}

// Float32s returns the first n numbers of the buffer.
func (b *Buffer) Float32s(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&b.Bytes[0])), n)
}

func (b *Buffer) Pointer() unsafe.Pointer { return unsafe.Pointer(&b.Bytes[0]) }

// Address returns the buffer's address for kernels, which is the host's.
func (b *Buffer) Address() kernels.Address { return kernels.Address(uintptr(b.Pointer())) }

// pinnedPool keeps buffers for reuse.
type pinnedPool struct {
	mu   sync.Mutex // protects free
	free [len(bufferSizes)][]*Buffer
	all  []unsafe.Pointer // the executor's
}

func (p *pinnedPool) get(class int) *Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free[class]
	if len(free) == 0 {
		return nil
	}
	b := free[len(free)-1]
	p.free[class] = free[:len(free)-1]
	return b
}

// PutBuffer gives a buffer back. Any goroutine may call it.
func (ex *Executor) PutBuffer(b *Buffer) {
	p := &ex.pinned
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[b.class] = append(p.free[b.class], b)
}

// TakeBuffer takes a buffer of at least n bytes, n ≤ ChunkBytes. Any goroutine but the executor may
// call it.
func (ex *Executor) TakeBuffer(n int) (*Buffer, error) {
	if b := ex.pinned.get(bufferClass(n)); b != nil {
		return b, nil
	}
	return Ask(ex, func() (*Buffer, error) { return ex.AllocBuffer(n) })
}

// AllocBuffer is TakeBuffer for the executor.
func (ex *Executor) AllocBuffer(n int) (*Buffer, error) {
	class := bufferClass(n)
	if b := ex.pinned.get(class); b != nil {
		return b, nil
	}
	size := bufferSizes[class]
	var p unsafe.Pointer
	if err := ex.API.Check(ex.API.MemHostAlloc(&p, uintptr(size), driver.HostPortable), "cuMemHostAlloc",
		"taking %d bytes of pinned memory", size); err != nil {
		return nil, err
	}
	ex.pinned.all = append(ex.pinned.all, p)
	return &Buffer{unsafe.Slice((*byte)(p), size), class}, nil
}
