package cpu

import (
	"syscall"
	"testing"
	"unsafe"
)

// beforeFence returns n numbers that end where memory ends: reading or writing one more is a fault.
func beforeFence(t *testing.T, n int) []float32 {
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

// No operand is read or written behind its last word, however little of the last tile is left.
func TestGemmStaysInBounds(t *testing.T) {
	for _, l := range layouts {
		for _, s := range [][3]int{{1, 1, 1}, {1, 3, 5}, {7, 9, 11}, {13, 17, 8}, {15, 41, 9}, {16, 31, 16},
			{520, 33, 5}, {9, 130, 7}, {513, 35, 3}} {
			m, n, k := s[0], s[1], s[2]
			for _, apart := range []int{0, 1024} { // packed rows, and rows that are packed for the sake of the cache
				lda, ldb := strides(l.transA, l.transB, m, n, k)
				lda, ldb = max(lda, apart), max(ldb, apart)
				a, b := stored(l.transA, nil, lda), stored(l.transB, nil, ldb)
				a.data = beforeFence(t, (m-1)*a.rs+(k-1)*a.cs+1)
				b.data = beforeFence(t, (k-1)*b.rs+(n-1)*b.cs+1)
				copy(a.data, noise("a", len(a.data)))
				copy(b.data, noise("b", len(b.data)))
				want := make([]float32, m*n)
				productPlain(m, n, k, 1, a, b, 0, view{want, n, 1}, epilogue{})
				for _, with := range implementations() {
					for _, beta := range []float32{0, 1} { // C is zero, so that both give the same
						c := beforeFence(t, m*n)
						with.product(m, n, k, 1, a, b, beta, view{c, n, 1}, epilogue{})
						sameWords(t, with.name, c, want)
					}
				}
			}
		}
	}
}
