package cpu

import (
	"runtime"
	"testing"
	"unsafe"

	"fspda/cpu/kernel"
)

// Vectors from slabs are zeros that begin at a cache line, and no two share a number.
func TestSlabs(t *testing.T) {
	d := New()
	var all [][]float32
	for i, n := range []int{minSlabVector, minSlabVector - 1, 79_510, minSlab - 1, 1, minSlab, 79_510, 500_001, 700_000,
		minSlabVector + 1, 0} {
		v := d.NewVector(n).(*Vector).Data
		if len(v) != n || cap(v) != n {
			t.Fatalf("length %d, capacity %d, want %d", len(v), cap(v), n)
		}
		if n > 0 && uintptr(unsafe.Pointer(&v[0]))%kernel.CacheLine != 0 {
			t.Errorf("%d numbers begin at %p", n, &v[0])
		}
		for j, x := range v {
			if x != 0 {
				t.Fatalf("vector %d: element %d of %d is %v", i, j, n, x)
			}
			v[j] = float32(i + 1)
		}
		all = append(all, v)
	}
	for i, v := range all {
		for j, x := range v {
			if x != float32(i+1) {
				t.Fatalf("vector %d: element %d is %v, want %d", i, j, x, i+1)
			}
		}
	}
}

// A run of many agents has few slabs, and their memory is freed with their vectors.
func TestSlabsAreFreed(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	d := New()
	before := heap()
	for range 1000 { // 310 MB, if no vector were freed
		d.NewVector(79_510)
	}
	if after := heap(); after > before+4*(minSlab+hugePageFloats)+1<<20 {
		t.Errorf("%d bytes are left of unreachable vectors, want one slab at most", after-before)
	}
	runtime.KeepAlive(d)
}
