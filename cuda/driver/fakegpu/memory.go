package fakegpu

import (
	"fmt"
	"slices"
	"unsafe"

	"fspda/cuda/driver"
)

// memory is a set of allocations in host memory, which keeps its own addresses: on this machine
// they are those of the device.
type memory struct {
	blocks []allocation // by address
	counts bool         // there are addresses, and no memory
	next   uintptr      // address, if so
}

type allocation struct {
	at   uintptr
	size uintptr
	room []uint64 // what it lies in; 256-byte aligned from at on; nil where memory is counted
}

// alignment of an allocation, as a driver's.
const alignment = 256

// poison fills new memory: whoever reads it before it is written sees odd numbers.
const poison = 0x7fc0dead7fc0dead

func (m *memory) alloc(n uintptr) uintptr {
	if m.counts {
		at := m.next
		m.next += (n + 2*alignment) / alignment * alignment
		m.blocks = append(m.blocks, allocation{at: at, size: n})
		return at
	}
	room := make([]uint64, (n+2*alignment)/8)
	for i := range room {
		room[i] = poison
	}
	at := (uintptr(unsafe.Pointer(&room[0])) + alignment - 1) / alignment * alignment
	i, _ := slices.BinarySearchFunc(m.blocks, at, compareAddress)
	m.blocks = slices.Insert(m.blocks, i, allocation{at, n, room})
	return at
}

func compareAddress(a allocation, at uintptr) int {
	switch {
	case a.at < at:
		return -1
	case a.at > at:
		return 1
	}
	return 0
}

// free returns the size of what was freed.
func (m *memory) free(at uintptr) (uintptr, bool) {
	i, ok := slices.BinarySearchFunc(m.blocks, at, compareAddress)
	if !ok {
		return 0, false
	}
	n := m.blocks[i].size
	for j := range m.blocks[i].room {
		m.blocks[i].room[j] = poison
	}
	m.blocks = slices.Delete(m.blocks, i, i+1)
	return n, true
}

// find returns n bytes from at on, where they lie in one allocation. Of memory that is only counted
// it returns none.
func (m *memory) find(at, n uintptr) ([]byte, error) {
	i, ok := slices.BinarySearchFunc(m.blocks, at, compareAddress)
	if !ok {
		i--
	}
	if i < 0 || at+n > m.blocks[i].at+m.blocks[i].size {
		return nil, fmt.Errorf("%d bytes at %#x are not in one allocation", n, at)
	}
	b := &m.blocks[i]
	if m.counts {
		return nil, nil
	}
	first := unsafe.Pointer(unsafe.SliceData(b.room))
	return unsafe.Slice((*byte)(unsafe.Add(first, at-uintptr(first))), n), nil
}

// Bytes returns n bytes of device memory, for a test or a kernel that wants to look at them. Where
// there are none the error says so.
func (m *Machine) Bytes(at driver.Pointer, n int) ([]byte, error) {
	return m.device.find(uintptr(at), uintptr(n))
}

// Reaches tells whether a kernel may read and write so many bytes: of the device, or pinned memory
// of the host.
func (m *Machine) Reaches(at driver.Pointer, n int) error {
	if _, err := m.Bytes(at, n); err == nil {
		return nil
	}
	_, err := m.host.find(uintptr(at), uintptr(n))
	return err
}

func (m *Machine) fillMemory(a *driver.API) {
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
	a.MemFree = func(p driver.Pointer) driver.Result { // it waits for all work
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
			panic(err) // it was just made
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
	a.MemcpyHtoD = func(dst driver.Pointer, src unsafe.Pointer, n uintptr, s driver.Stream) driver.Result {
		return m.copying(s, uintptr(dst), uintptr(src), n, &m.device, &m.host)
	}
	a.MemcpyDtoH = func(dst unsafe.Pointer, src driver.Pointer, n uintptr, s driver.Stream) driver.Result {
		return m.copying(s, uintptr(dst), uintptr(src), n, &m.host, &m.device)
	}
	a.MemcpyDtoD = func(dst, src driver.Pointer, n uintptr, s driver.Stream) driver.Result {
		return m.copying(s, uintptr(dst), uintptr(src), n, &m.device, &m.device)
	}
	a.MemcpyPeer = func(dst driver.Pointer, to driver.Context, src driver.Pointer, from driver.Context, n uintptr,
		s driver.Stream) driver.Result {
		if !m.peers[[2]driver.Context{to, from}] {
			return driver.InvalidContext // a driver would stage it, and hold up its caller
		}
		return m.copying(s, uintptr(dst), uintptr(src), n, &m.device, &m.device)
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

// copying queues a copy. Both ends are looked up now, as the driver does, and when it happens.
func (m *Machine) copying(s driver.Stream, dst, src, n uintptr, to, from *memory) driver.Result {
	move := func() error {
		d, err := to.find(dst, n)
		if err != nil {
			return err
		}
		b, err := from.find(src, n)
		if err != nil {
			return err
		}
		if from.counts {
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
