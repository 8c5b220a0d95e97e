package dist

import (
	"sync"
	"testing"

	"fspda/cpu"
	"fspda/device/devicetest"
)

func TestPoolReuses(t *testing.T) {
	p := NewPool(devicetest.NewFloat64())
	if p.Device().Name() != devicetest.NewFloat64().Name() {
		t.Errorf("device %s", p.Device().Name())
	}
	a := p.Get(5)
	if a.V.Len() != 5 {
		t.Fatalf("length %d", a.V.Len())
	}
	if b := p.Get(5); b == a {
		t.Fatal("one buffer was returned twice")
	}
	a.Retain(2)
	a.Release()
	a.Release()
	if b := p.Get(5); b == a {
		t.Fatal("a buffer was returned that still has a reference")
	}
	a.Release()
	if b := p.Get(4); b == a || b.V.Len() != 4 {
		t.Fatal("a buffer of another length was returned")
	}
	if b := p.Get(5); b != a {
		t.Error("a free buffer was not reused")
	}
}

func TestBufferPanics(t *testing.T) {
	p := NewPool(devicetest.NewFloat64())
	b := p.Get(1)
	mustPanic(t, "Retain of a negative number", func() { b.Retain(-1) })
	b.Retain(0)
	b.Release()
	mustPanic(t, "Release without reference", b.Release)
	c := NewPool(devicetest.NewFloat64()).Get(1)
	c.Release()
	mustPanic(t, "Retain after release", func() { c.Retain(1) })
}

// Releasing a wrapped buffer calls free once. Wrap works only where the device can use the memory.
func TestPoolWraps(t *testing.T) {
	if _, ok := NewPool(devicetest.NewFloat64()).Wrap([]float32{1}, nil); ok {
		t.Error("a device of float64 numbers wrapped float32 memory")
	}
	p := NewPool(cpu.New())
	freed := 0
	b, ok := p.Wrap([]float32{1, 2}, func() { freed++ })
	if !ok || b.V.Len() != 2 {
		t.Fatalf("wrapped: %v", ok)
	}
	if v, ok := p.Floats(b); !ok || v[1] != 2 {
		t.Errorf("%v, %v", v, ok)
	}
	b.Retain(1)
	b.Release()
	if freed != 0 {
		t.Error("the memory was freed while there is a reference")
	}
	if b.Release(); freed != 1 {
		t.Errorf("the memory was freed %d times, want once", freed)
	}
	if p.Get(2) == b {
		t.Error("wrapped memory is in the pool")
	}
}

// Varying lengths do not accumulate: the least recently used length is evicted.
func TestPoolIsBounded(t *testing.T) {
	p := NewPool(devicetest.NewFloat64())
	kept := p.Get(100_000)
	kept.Release()
	for n := range 3 * maxFreeLists {
		p.Get(n + 1).Release()
		if b := p.Get(100_000); b != kept { // used throughout
			t.Fatalf("after %d lengths the one in use was evicted", n+1)
		}
		kept.Release()
	}
	if len(p.free) != maxFreeLists {
		t.Errorf("%d lengths are kept, want %d", len(p.free), maxFreeLists)
	}
	if p.free[1] != nil || p.free[3*maxFreeLists] == nil {
		t.Error("other lengths than the oldest were evicted")
	}
}

// Many goroutines share, retain and release: no buffer is ever in use twice.
func TestPoolUnderContention(t *testing.T) {
	p := NewPool(devicetest.NewFloat64())
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for k := range 500 {
				b := p.Get(1 + k%3)
				v := b.V.(*devicetest.Vector64)
				v.Data[0] = float64(w)
				b.Retain(1)
				b.Release()
				if v.Data[0] != float64(w) {
					t.Errorf("another goroutine wrote %v", v.Data[0])
				}
				b.Release()
			}
		})
	}
	wg.Wait()
}

func TestPoolAllocatesNothing(t *testing.T) {
	p := NewPool(devicetest.NewFloat64())
	p.Get(8).Release()
	if allocs := testing.AllocsPerRun(100, func() { p.Get(8).Release() }); allocs != 0 {
		t.Errorf("Get and Release allocate %v times", allocs)
	}
}
