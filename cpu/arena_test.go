package cpu

import (
	"math"
	"runtime"
	"sync"
	"testing"

	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// chain is code with a large arena: all parameters are doubled n times on their way through the
// arena, and a convolution needs scratch memory.
func chain(n int) *device.Code {
	const dim = 3 * 3 * 40 * 40
	c := &device.Code{Name: "chain", Batch: 1, Features: 40 * 40 * 40, Dim: dim, Gradient: true, Arena: n * dim}
	at := func(s device.Space, off int) device.Ref { return device.Ref{Space: s, Off: off, Len: dim} }
	from := at(device.Params, 0)
	for i := range n {
		to := at(device.Arena, i*dim)
		c.Calls = append(c.Calls, device.Call{Kernel: device.Scale, Attr: 2, Dims: []int{dim}, In: []device.Ref{from},
			Out: []device.Ref{to}})
		from = to
	}
	y := device.Ref{Space: device.Arena, Off: c.Arena, Len: 40 * 40 * 40}
	c.Arena += y.Len
	c.Calls = append(c.Calls, device.Call{Kernel: device.Conv, Dims: []int{1, 40, 40, 40, 40, 3, 3, 1, 1},
		In: []device.Ref{{Space: device.Input, Len: y.Len}, from}, Out: []device.Ref{y}},
		device.Call{Kernel: device.ConvGradW, Dims: []int{1, 40, 40, 40, 40, 3, 3, 1, 1},
			In: []device.Ref{{Space: device.Input, Len: y.Len}, y}, Out: []device.Ref{at(device.Grads, 0)}})
	return c
}

func chainBatch(c *device.Code) device.Batch {
	return device.Batch{X: kerneltest.Noise("chain", c.Features), Y: []int32{0}}
}

func runChain(t *testing.T, d *Device, n int) []float32 {
	t.Helper()
	c := chain(n)
	p, err := d.Load(c)
	if err != nil {
		t.Fatal(err)
	}
	grad := &Vector{Data: make([]float32, c.Dim)}
	for range 2 {
		if err := p.Run(&Vector{Data: kerneltest.Noise("params", c.Dim)}, grad, chainBatch(c), nil); err != nil {
			t.Fatal(err)
		}
	}
	return grad.Data
}

// Results do not depend on old contents of an acquired arena, nor on other Programs that run at the
// same time.
func TestBorrowedArenas(t *testing.T) {
	d := New()
	lengths := []int{19, 23, 20, 40}
	want := map[int][]float32{}
	for _, n := range lengths {
		want[n] = runChain(t, New(), n)
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			n := lengths[i%len(lengths)]
			for k, v := range runChain(t, d, n) {
				if math.Float32bits(v) != math.Float32bits(want[n][k]) {
					t.Errorf("chain of %d: element %d is %v, want %v", n, k, v, want[n][k])
					return
				}
			}
		})
	}
	all.Wait()
	if most := runtime.GOMAXPROCS(0); len(d.arenas.free) > most || d.arenas.out != 0 {
		t.Errorf("%d arenas are left of 12 users on %d threads, and %d are in use", len(d.arenas.free), most,
			d.arenas.out)
	}
}

// Programs that run one after the other take as much memory as the Footprint of the largest, within
// five percent.
func TestFootprint(t *testing.T) {
	d := New()
	var codes []*device.Code
	var programs []device.Program
	for _, n := range []int{200, 100, 150} {
		codes = append(codes, chain(n))
		p, err := d.Load(codes[len(codes)-1])
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	params, grad, batch := New().NewVector(codes[0].Dim), New().NewVector(codes[0].Dim), chainBatch(codes[0])
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, p := range programs {
		if err := p.Run(params, grad, batch, nil); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	took, want := float64(after.TotalAlloc-before.TotalAlloc), float64(d.Footprint(codes[0]))
	if took > 1.05*want || took < 0.95*want {
		t.Errorf("three programs took %.0f bytes, the Footprint of the largest is %.0f", took, want)
	}
	c := layer(2, 3, 4)
	if small := d.Footprint(c) - 4*kernels.Pooled(&c.Calls[0], 1); small > 1000 {
		t.Errorf("%d bytes for a layer of 3", small)
	}
}
