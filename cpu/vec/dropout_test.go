package vec

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu/kernel"
	"fspda/device"
)

func dropoutArgs(n, layer int, p float64, key uint64) *kernel.Args {
	o := &kernel.Args{Dims: []int{n, layer}, Attr: p, In: [][]float32{make([]float32, n), make([]float32, 4)},
		Out: [][]float32{make([]float32, n)}}
	for i := range o.In[0] {
		o.In[0][i] = 1
	}
	device.Batch{Key: key}.KeyNumbers(o.In[1])
	return o
}

// The share of numbers that are dropped is p, the mean stays, and each key and each layer has a
// mask of its own.
func TestDropoutMask(t *testing.T) {
	const n = 200000
	masks := map[string]bool{}
	for _, p := range []float64{0.1, 0.5, 0.9} {
		for _, c := range []struct {
			key   uint64
			layer int
		}{{1, 1}, {1, 2}, {2, 1}, {1 << 63, 1}} {
			o := dropoutArgs(n, c.layer, p, c.key)
			if err := dropout(o); err != nil {
				t.Fatal(err)
			}
			dropped, sum := 0, 0.0
			for _, v := range o.Out[0] {
				if v == 0 {
					dropped++
				}
				sum += float64(v)
			}
			if share := float64(dropped) / n; math.Abs(share-p) > 5*math.Sqrt(p*(1-p)/n) {
				t.Errorf("p %v, key %d, layer %d: %v of the numbers are dropped", p, c.key, c.layer, share)
			}
			if math.Abs(sum/n-1) > 5*math.Sqrt(p/(1-p)/n) {
				t.Errorf("p %v: the mean of ones became %v", p, sum/n)
			}
			masks[fmt.Sprint(o.Out[0][:200])] = true
		}
	}
	if len(masks) != 12 {
		t.Errorf("%d different masks, want 12", len(masks))
	}
}

// The key 0 stands for no dropout.
func TestDropoutWithoutKey(t *testing.T) {
	o := dropoutArgs(100, 1, 0.5, 0)
	o.In[0][3] = float32(math.Inf(-1))
	if err := dropout(o); err != nil {
		t.Fatal(err)
	}
	for i, v := range o.Out[0] {
		if v != o.In[0][i] {
			t.Fatalf("number %d is %v, was %v", i, v, o.In[0][i])
		}
	}
}

// The mask does not depend on the number of threads.
func TestDropoutThreads(t *testing.T) {
	team := kernel.NewTeam(3)
	defer team.Stop()
	want, got := dropoutArgs(300001, 3, 0.3, 77), dropoutArgs(300001, 3, 0.3, 77)
	got.Workers = &kernel.Workers{Team: team}
	for _, o := range []*kernel.Args{want, got} {
		if err := dropout(o); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range want.Out[0] {
		if got.Out[0][i] != v {
			t.Fatalf("number %d is %v with helpers, %v without", i, got.Out[0][i], v)
		}
	}
}
