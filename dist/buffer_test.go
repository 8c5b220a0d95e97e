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
		t.Fatal("one buffer was lent twice")
	}
	a.Retain(2)
	a.Release()
	a.Release()
	if b := p.Get(5); b == a {
		t.Fatal("a buffer was lent that still has a holder")
	}
	a.Release()
	if b := p.Get(4); b == a || b.V.Len() != 4 {
		t.Fatal("another length got it")
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
	mustPanic(t, "Release without holder", b.Release)
	c := NewPool(devicetest.NewFloat64()).Get(1)
	c.Release()
	mustPanic(t, "Retain after release", func() { c.Retain(1) })
}

// A wrapped buffer goes back to whom its memory belongs, once, and only where the device can use it
// there.
func TestPoolWraps(t *testing.T) {
	if _, ok := NewPool(devicetest.NewFloat64()).Wrap([]float32{1}, nil); ok {
		t.Error("float64 numbers were made of float32 ones in place")
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
		t.Error("the memory was given back while somebody holds it")
	}
	if b.Release(); freed != 1 {
		t.Errorf("the memory was given back %d times, want once", freed)
	}
	if p.Get(2) == b {
		t.Error("memory of others is in the pool")
	}
}

// Lengths that vary do not pile up: the least recently used is forgotten, the others stay.
func TestPoolIsBounded(t *testing.T) {
	p := NewPool(devicetest.NewFloat64())
	kept := p.Get(100_000)
	kept.Release()
	for n := range 3 * maxFreeLists {
		p.Get(n + 1).Release()
		if b := p.Get(100_000); b != kept { // used all the time
			t.Fatalf("after %d lengths the one in use was forgotten", n+1)
		}
		kept.Release()
	}
	if len(p.free) != maxFreeLists {
		t.Errorf("%d lengths are kept, want %d", len(p.free), maxFreeLists)
	}
	if p.free[1] != nil || p.free[3*maxFreeLists] == nil {
		t.Error("not the oldest lengths were forgotten")
	}
}

// Many goroutines share, retain and release: no buffer is ever lent twice.
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
					t.Errorf("somebody else wrote %v", v.Data[0])
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
