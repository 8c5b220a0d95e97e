package kernel

import (
	"testing"
	"unsafe"
)

func TestAligned(t *testing.T) {
	for n := range 200 {
		v := Aligned(n)
		if len(v) != n || cap(v) != n {
			t.Fatalf("length %d, capacity %d, want %d", len(v), cap(v), n)
		}
		if n > 0 && uintptr(unsafe.Pointer(&v[0]))%CacheLine != 0 {
			t.Fatalf("%d numbers begin at %p", n, &v[0])
		}
	}
}

// A vector long enough for huge pages is like all others: zeros that begin at a cache line.
func TestAlignedLarge(t *testing.T) {
	for _, n := range []int{largeVector, largeVector + 1001} {
		v := Aligned(n)
		if len(v) != n || cap(v) != n || uintptr(unsafe.Pointer(&v[0]))%CacheLine != 0 {
			t.Fatalf("%d numbers begin at %p, capacity %d", len(v), &v[0], cap(v))
		}
		for i, x := range v {
			if x != 0 {
				t.Fatalf("element %d of %d is %v", i, n, x)
			}
		}
		v[0], v[n-1] = 1, 1
	}
}
