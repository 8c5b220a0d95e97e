package cuda

import (
	"errors"
	"slices"
	"testing"
	"weak"

	"fspda/cuda/executor"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
)

// A run may have more results than a buffer of pinned memory has numbers, as the logits of a large
// batch of many classes.
func TestManyResults(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{}, false)
	const n = executor.ChunkBytes/4 + 1000
	all := func(s device.Space) []device.Ref { return []device.Ref{{Space: s, Len: n}} }
	code := &device.Code{Name: "many results", Batch: 1, Features: n, Dim: 1, Arena: n, Calls: []device.Call{
		{Kernel: device.Scale, In: all(device.Input), Out: all(device.Arena), Dims: []int{n}, Attr: 2}}}
	b, want := device.Batch{X: make([]float32, n), Y: []int32{0}}, make([]float64, n)
	for i := range n {
		b.X[i], want[i] = float32(i), 2*float64(i)
		code.Results = append(code.Results, device.Result{Name: "twice", Ref: device.Ref{Space: device.Arena, Off: i,
			Len: 1}})
	}
	p, err := d.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float64, n)
	if err := p.Run(d.NewVector(1), nil, b, got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d results are not twice the inputs (%v)", n, err)
	}
}

// A closed device keeps no program, although cleanups of the program refer to the device.
func TestClosedDeviceIsForgotten(t *testing.T) {
	var code weak.Pointer[device.Code]
	func() {
		d, _ := openFake(t, fakegpu.Options{}, false)
		c := doubling(8)
		code = weak.Make(c)
		p, err := d.Load(c)
		if err == nil {
			b := device.Batch{X: make([]float32, 8), Y: []int32{0}}
			err = errors.Join(p.Run(d.NewVector(8), d.NewVector(8), b, make([]float64, 1)), d.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}()
	for range 20 {
		if collectAll(); code.Value() == nil {
			return
		}
	}
	t.Error("the program is still in memory")
}
