//go:build linux || darwin

package sharedmem

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File is memory without a name that other processes can map. It is safe for concurrent use.
type File struct {
	f *os.File

	mu      sync.Mutex
	size    int64              // The length of the file in bytes.
	used    int64              // The offset from which on the file was never given out.
	free    map[int64][]int64  // The offsets of freed regions, by their length.
	regions map[uintptr]Region // The regions in use, by their address.
}

// Open makes an empty File.
func Open() (*File, error) {
	f, err := open()
	if err != nil {
		return nil, fmt.Errorf("sharedmem: %w", err)
	}
	return &File{f: f, free: map[int64][]int64{}, regions: map[uintptr]Region{}}, nil
}

// Fd returns the descriptor of the file, for other processes.
func (f *File) Fd() int { return int(f.f.Fd()) }

// Floats returns n zeros in the file, which begin at a page.
func (f *File) Floats(n int) ([]float32, error) {
	page := int64(unix.Getpagesize())
	bytes := (4*int64(n) + page - 1) / page * page
	if bytes == 0 {
		return nil, nil
	}
	begin := unsafe.Pointer(unsafe.SliceData(make([]byte, bytes+page)))
	at := unsafe.Add(begin, -uintptr(begin)&uintptr(page-1))
	f.mu.Lock()
	defer f.mu.Unlock()
	offset, err := f.reserve(bytes)
	if err != nil {
		return nil, err
	}
	if err := replace(at, bytes, f.Fd(), offset, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("sharedmem: mapping %d bytes: %w", bytes, err)
	}
	f.regions[uintptr(at)] = Region{offset, bytes}
	// The finalizer runs while the allocation still exists: nobody else gets pages of the file.
	skip := uintptr(at) - uintptr(begin)
	runtime.SetFinalizer((*byte)(begin), func(begin *byte) {
		f.release(unsafe.Add(unsafe.Pointer(begin), skip), Region{offset, bytes})
	})
	return unsafe.Slice((*float32)(at), n), nil
}

// replace replaces pages of an allocation by pages of a file, or by ordinary ones if fd is -1. With
// checks of pointers a program would end at the result of the call, which was made from a number.
//
//go:nocheckptr
func replace(at unsafe.Pointer, bytes int64, fd int, offset int64, flags int) error {
	_, err := unix.MmapPtr(fd, offset, at, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_FIXED|flags)
	return err
}

// reserve returns the offset of bytes that are zero. The caller holds the lock.
func (f *File) reserve(bytes int64) (offset int64, err error) {
	if list := f.free[bytes]; len(list) > 0 {
		f.free[bytes] = list[:len(list)-1]
		return list[len(list)-1], nil
	}
	offset = f.used
	if need := offset + bytes; need > f.size {
		size := max(need, 2*f.size)
		if err := f.f.Truncate(size); err != nil {
			return 0, fmt.Errorf("sharedmem: %d bytes of shared memory: %w", size, err)
		}
		f.size = size
	}
	f.used += bytes
	return offset, nil
}

// release replaces the pages of a region by ordinary ones, and frees them in the file.
func (f *File) release(at unsafe.Pointer, r Region) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.regions, uintptr(at))
	if err := replace(at, r.Bytes, -1, 0, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		panic(fmt.Sprintf("sharedmem: replacing %d bytes: %v", r.Bytes, err)) // else others would write to the file
	}
	if zero(f.Fd(), r) == nil {
		f.free[r.Bytes] = append(f.free[r.Bytes], r.Offset)
	}
}

// Find returns the region of numbers that Floats returned. It returns false for other numbers.
func (f *File) Find(numbers []float32) (Region, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.regions[uintptr(unsafe.Pointer(unsafe.SliceData(numbers)))]
	bytes := 4 * int64(len(numbers))
	return Region{r.Offset, bytes}, ok && bytes > 0 && bytes <= r.Bytes
}
