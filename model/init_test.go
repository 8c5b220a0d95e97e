package model

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

func mnist(t testing.TB) *Network {
	t.Helper()
	net, err := MLP(MLPOptions{Inputs: 784, Classes: 10, Hidden: []int{100}, WeightDecay: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// Each tensor is uniform in ±1/√fan-in: within the range, close to both ends, and with the right
// mean and variance within five standard errors.
func TestInitIsUniformByFanIn(t *testing.T) {
	net := mnist(t)
	x := net.Init(3)
	for name, fanIn := range map[string]float64{"fc1.weight": 784, "fc1.bias": 784, "fc2.weight": 100,
		"fc2.bias": 100} {
		bound := 1 / math.Sqrt(fanIn)
		v := net.Layout().View(x, name)
		n := float64(len(v))
		sum, squares, largest := 0.0, 0.0, 0.0
		for _, f := range v {
			u := float64(f) / bound
			sum += u
			squares += u * u
			largest = max(largest, math.Abs(u))
		}
		if largest > 1+1e-7 || largest < 1-5/n {
			t.Errorf("%s: largest is %v of the bound", name, largest)
		}
		if mean := sum / n; math.Abs(mean) > 5/math.Sqrt(3*n) {
			t.Errorf("%s: mean %v of the bound, want 0", name, mean)
		}
		if second := squares / n; math.Abs(second-1.0/3) > 5*math.Sqrt(4.0/45/n) {
			t.Errorf("%s: mean square %v of the bound, want 1/3", name, second)
		}
	}
}

func TestInitIsAFunctionOfTheSeed(t *testing.T) {
	net := mnist(t)
	a := net.Init(1)
	if !slices.Equal(a, net.Init(1)) {
		t.Error("two calls with one seed differ")
	}
	if slices.Equal(a, net.Init(2)) {
		t.Error("two seeds give one model")
	}
	s := rng.New(1, "init")
	// the order is the flat order: √784 = 28
	if want := float32(2*s.Float64()-1) / 28; math.Abs(float64(a[0]-want)) > 1e-8 {
		t.Errorf("first parameter is %v, want %v", a[0], want)
	}
}
