package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"fspda/cuda/driver"
)

// chunk is the size of the buffers through which vectors travel, in bytes: large enough for full
// speed, small enough to keep a few.
const chunk = 4 << 20

// small is the size of the buffers for little things.
const small = 16 << 10

// middling is the size of the buffers for what agents that compute together say of their batches.
const middling = 256 << 10

// pinned keeps host memory that the GPU reads and writes by itself.
type pinned struct {
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

func classOfBuffer(n int) int {
	for class, size := range bufferSize {
		if n <= size {
			return class
		}
	}
	panic(fmt.Sprintf("cuda: a buffer of %d bytes, want %d at most", n, chunk))
}

var bufferSize = [...]int{small, middling, chunk}

// float32s is the buffer as n numbers.
func (b *buffer) float32s(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&b.bytes[0])), n)
}

func (b *buffer) pointer() unsafe.Pointer { return unsafe.Pointer(&b.bytes[0]) }

// buffer takes one for up to n bytes, n ≤ chunk, from any goroutine but the owner's.
func (o *owner) buffer(n int) (*buffer, error) {
	class := classOfBuffer(n)
	if b := o.pinned.take(class); b != nil {
		return b, nil
	}
	var made *buffer
	err := o.ask(func() (err error) {
		made, err = o.newBuffer(class)
		return err
	})
	return made, err
}

// newBuffer makes one. It is the owner's.
func (o *owner) newBuffer(class int) (*buffer, error) {
	if b := o.pinned.take(class); b != nil {
		return b, nil
	}
	size := bufferSize[class]
	var p unsafe.Pointer
	if err := o.api.Check(o.api.MemHostAlloc(&p, uintptr(size), driver.HostPortable), "cuMemHostAlloc",
		"taking %d bytes of pinned memory", size); err != nil {
		return nil, err
	}
	o.pinned.mu.Lock()
	defer o.pinned.mu.Unlock()
	o.pinned.all = append(o.pinned.all, p)
	return &buffer{unsafe.Slice((*byte)(p), size), class}, nil
}

func (p *pinned) take(class int) *buffer {
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

func (p *pinned) give(b *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[b.class] = append(p.free[b.class], b)
}
