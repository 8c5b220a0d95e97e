package kerneltest

import (
	"syscall"
	"testing"
	"unsafe"
)

// Fenced returns n zeros that end where a page begins that may not be touched: reading or writing
// one number more is a fault.
func Fenced(t *testing.T, n int) []float32 {
	t.Helper()
	size := syscall.Getpagesize()
	pages := (4*n + size - 1) / size * size
	mem, err := syscall.Mmap(-1, 0, pages+size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mprotect(mem[pages:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&mem[pages-4*n])), n)
}
