package fakegpu

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"fspda/cuda/driver"
)

// memory is a set of allocations in host memory. Host addresses serve as device addresses.
type memory struct {
	blocks    []*allocation // sorted by address
	countOnly bool          // addresses without memory behind them
	next      uintptr       // next address if countOnly
}

type allocation struct {
	at   uintptr
	size uintptr
	data []uint64 // backing store, 256-byte aligned from at on; nil if countOnly
}

// alignment is the alignment of allocations, as the driver's.
const alignment = 256

// poison fills new memory, so that reads before the first write return conspicuous numbers.
const poison = 0x7fc0dead7fc0dead

// poisoned is 4 KiB of poison.
var poisoned = func() (page [512]uint64) {
	for i := range page {
		page[i] = poison
	}
	return page
}()

// fill fills memory with poison. It only writes where there is something else.
func fill(data []uint64) {
	for ; len(data) >= len(poisoned); data = data[len(poisoned):] {
		if page := (*[len(poisoned)]uint64)(data); *page != poisoned {
			*page = poisoned
		}
	}
	copy(data, poisoned[:])
}

// spare holds large allocations of all machines that were freed and filled with poison: pools of
// *[]uint64 by length. A library's workspace of 32 MiB, for instance, serves one device after
// another.
var spare sync.Map

// words returns n words of poison.
func words(n int) []uint64 {
	if pool, ok := spare.Load(n); ok {
		if data, _ := pool.(*sync.Pool).Get().(*[]uint64); data != nil {
			return *data
		}
	}
	data := make([]uint64, n)
	fill(data)
	return data
}

// release keeps freed memory for words, if it is worth it.
func release(data []uint64) {
	fill(data)
	if len(data) >= 1<<17 {
		pool, _ := spare.LoadOrStore(len(data), &sync.Pool{})
		pool.(*sync.Pool).Put(&data)
	}
}

func (m *memory) alloc(n uintptr) uintptr {
	if m.countOnly {
		at := m.next
		m.next += (n + 2*alignment) / alignment * alignment
		m.blocks = append(m.blocks, &allocation{at: at, size: n})
		return at
	}
	data := words(int(n+2*alignment) / 8)
	at := (uintptr(unsafe.Pointer(&data[0])) + alignment - 1) / alignment * alignment
	i, _ := m.search(at)
	m.blocks = slices.Insert(m.blocks, i, &allocation{at, n, data})
	return at
}

// search returns the position of an address among the blocks, and whether a block begins there.
func (m *memory) search(at uintptr) (int, bool) {
	return slices.BinarySearchFunc(m.blocks, at, func(a *allocation, at uintptr) int { return cmp.Compare(a.at, at) })
}

// free removes the allocation at an address and returns its size.
func (m *memory) free(at uintptr) (uintptr, bool) {
	i, ok := m.search(at)
	if !ok {
		return 0, false
	}
	n := m.blocks[i].size
	release(m.blocks[i].data)
	m.blocks = slices.Delete(m.blocks, i, i+1)
	return n, true
}

// find returns n bytes starting at an address, if they lie in one allocation. If memory is only
// counted it returns nil.
func (m *memory) find(at, n uintptr) ([]byte, error) {
	i, ok := m.search(at)
	if !ok {
		i--
	}
	if i < 0 || at+n > m.blocks[i].at+m.blocks[i].size {
		return nil, fmt.Errorf("%d bytes at %#x do not lie in one allocation", n, at)
	}
	b := m.blocks[i]
	if m.countOnly {
		return nil, nil
	}
	first := unsafe.Pointer(unsafe.SliceData(b.data))
	return unsafe.Slice((*byte)(unsafe.Add(first, at-uintptr(first))), n), nil
}

// Bytes returns n bytes of device memory, for a test or a kernel.
func (m *Machine) Bytes(at driver.Pointer, n int) ([]byte, error) {
	return m.device.find(uintptr(at), uintptr(n))
}

// CheckAccess returns an error unless a kernel may access n bytes: device memory or pinned host
// memory.
func (m *Machine) CheckAccess(at driver.Pointer, n int) error {
	if _, err := m.Bytes(at, n); err == nil {
		return nil
	}
	_, err := m.host.find(uintptr(at), uintptr(n))
	return err
}

func (m *Machine) setMemory(a *driver.API) {
	a.MemAlloc = func(out *driver.Pointer, n uintptr) driver.Result {
		if n == 0 {
			return driver.InvalidValue
		}
		if m.used+n > m.options.Memory {
			return driver.OutOfMemory
		}
		m.used += n
		*out = driver.Pointer(m.device.alloc(n))
		return driver.Success
	}
	a.MemFree = func(p driver.Pointer) driver.Result { // freeing waits for all work
		if r := m.finishAll(); r != driver.Success {
			return r
		}
		n, ok := m.device.free(uintptr(p))
		m.used -= n
		return valid(ok)
	}
	a.MemGetInfo = func(free, total *uintptr) driver.Result {
		*free, *total = m.options.Memory-m.used, m.options.Memory
		return driver.Success
	}
	a.MemHostAlloc = func(out *unsafe.Pointer, n uintptr, _ uint32) driver.Result {
		if n == 0 {
			return driver.InvalidValue
		}
		b, err := m.host.find(m.host.alloc(n), n)
		if err != nil {
			panic(err) // it was just allocated
		}
		*out = unsafe.Pointer(&b[0])
		return driver.Success
	}
	a.MemFreeHost = func(p unsafe.Pointer) driver.Result {
		if r := m.finishAll(); r != driver.Success {
			return r
		}
		_, ok := m.host.free(uintptr(p))
		return valid(ok)
	}
}

func (m *Machine) setCopies(a *driver.API) {
	a.MemcpyHtoD = func(dst driver.Pointer, src unsafe.Pointer, n uintptr, s driver.Stream) driver.Result {
		return m.enqueueCopy(s, uintptr(dst), uintptr(src), n, &m.device, &m.host)
	}
	a.MemcpyDtoH = func(dst unsafe.Pointer, src driver.Pointer, n uintptr, s driver.Stream) driver.Result {
		return m.enqueueCopy(s, uintptr(dst), uintptr(src), n, &m.host, &m.device)
	}
	a.MemcpyDtoD = func(dst, src driver.Pointer, n uintptr, s driver.Stream) driver.Result {
		return m.enqueueCopy(s, uintptr(dst), uintptr(src), n, &m.device, &m.device)
	}
	a.MemcpyPeer = func(dst driver.Pointer, to driver.Context, src driver.Pointer, from driver.Context, n uintptr,
		s driver.Stream) driver.Result {
		if !m.peers[[2]driver.Context{to, from}] {
			// the driver would copy through the host and block its caller
			return driver.InvalidContext
		}
		return m.enqueueCopy(s, uintptr(dst), uintptr(src), n, &m.device, &m.device)
	}
	a.MemsetD8 = func(dst driver.Pointer, value uint8, n uintptr, s driver.Stream) driver.Result {
		if _, err := m.device.find(uintptr(dst), n); err != nil {
			return driver.InvalidValue
		}
		return m.enqueue(s, "memset", func() error {
			b, err := m.device.find(uintptr(dst), n)
			for i := range b {
				b[i] = value
			}
			return err
		})
	}
}

// enqueueCopy queues a copy. Both ranges are checked now, as the driver does, and again when the
// copy runs.
func (m *Machine) enqueueCopy(s driver.Stream, dst, src, n uintptr, to, from *memory) driver.Result {
	move := func() error {
		d, err := to.find(dst, n)
		if err != nil {
			return err
		}
		b, err := from.find(src, n)
		if err != nil {
			return err
		}
		if from.countOnly {
			clear(d)
		}
		copy(d, b)
		return nil
	}
	if _, err := to.find(dst, n); err != nil {
		return driver.InvalidValue
	}
	if _, err := from.find(src, n); err != nil {
		return driver.InvalidValue
	}
	return m.enqueue(s, "copy", move)
}

func valid(ok bool) driver.Result {
	if ok {
		return driver.Success
	}
	return driver.InvalidValue
}
