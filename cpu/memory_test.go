package cpu

import (
	"testing"
	"unsafe"
)

func TestAligned(t *testing.T) {
	for n := range 200 {
		v := aligned(n)
		if len(v) != n || cap(v) != n {
			t.Fatalf("length %d, capacity %d, want %d", len(v), cap(v), n)
		}
		if n > 0 && uintptr(unsafe.Pointer(&v[0]))%line != 0 {
			t.Fatalf("%d numbers begin at %p", n, &v[0])
		}
	}
}
