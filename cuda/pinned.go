package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"fspda/cuda/driver"
)

// chunk is the size of the buffers through which vectors travel, in bytes: large enough for full
// speed, small enough to keep a few.
const chunkBytes = 4 << 20

// small is the size of the buffers for little things.
const smallBytes = 16 << 10

// middling is the size of the buffers for what agents that compute together say of their batches.
const mediumBytes = 256 << 10

// pinned keeps host memory that the GPU reads and writes by itself.
type pinnedPool struct {
	mu   sync.Mutex
	free [3][]*buffer // small ones, middling ones, chunks
	all  []unsafe.Pointer
}

// buffer is a piece of pinned memory. It belongs to whoever took it, then to the GPU until it has
// come so far.
type buffer struct {
	bytes []byte
	class int
}

func bufferClass(n int) int {
	for class, size := range bufferSizes {
		if n <= size {
			return class
		}
	}
	panic(fmt.Sprintf("cuda: a buffer of %d bytes, want %d at most", n, chunkBytes))
}

var bufferSizes = [...]int{smallBytes, mediumBytes, chunkBytes}

// float32s is the buffer as n numbers.
func (b *buffer) float32s(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&b.bytes[0])), n)
}

func (b *buffer) pointer() unsafe.Pointer { return unsafe.Pointer(&b.bytes[0]) }

// buffer takes one for up to n bytes, n ≤ chunk, from any goroutine but the owner's.
func (ex *executor) takeBuffer(n int) (*buffer, error) {
	class := bufferClass(n)
	if b := ex.pinned.get(class); b != nil {
		return b, nil
	}
	var made *buffer
	err := ex.do(func() (err error) {
		made, err = ex.buffer(class)
		return err
	})
	return made, err
}

// newBuffer makes one. It is the owner's.
func (ex *executor) buffer(class int) (*buffer, error) {
	if b := ex.pinned.get(class); b != nil {
		return b, nil
	}
	size := bufferSizes[class]
	var p unsafe.Pointer
	if err := ex.api.Check(ex.api.MemHostAlloc(&p, uintptr(size), driver.HostPortable), "cuMemHostAlloc",
		"taking %d bytes of pinned memory", size); err != nil {
		return nil, err
	}
	ex.pinned.mu.Lock()
	defer ex.pinned.mu.Unlock()
	ex.pinned.all = append(ex.pinned.all, p)
	return &buffer{unsafe.Slice((*byte)(p), size), class}, nil
}

func (p *pinnedPool) get(class int) *buffer {
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

func (p *pinnedPool) put(b *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[b.class] = append(p.free[b.class], b)
}
