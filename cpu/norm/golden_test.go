package norm

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"fspda/cpu/kernel"
	"fspda/device"
)

// groupGolden is testdata/groupnorm.json: see its README.
type groupGolden struct {
	N, C, H, W, Groups    int
	Eps                   float64
	X, DY, Gamma, Beta, V []float64
	Mean, Var             []float64
	GroupNorm             groupGoldenResult `json:"group_norm"`
	EvoNorm               groupGoldenResult `json:"evo_norm"`
}

type groupGoldenResult struct{ Y, DX, DGamma, DBeta, DV []float64 }

// channelsLast converts a tensor from PyTorch's order.
func (g *groupGolden) channelsLast(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		pixel, image := i%(g.H*g.W), i/(g.C*g.H*g.W)
		channel := i / (g.H * g.W) % g.C
		y[(image*g.H*g.W+pixel)*g.C+channel] = float32(v)
	}
	return y
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// closeTo allows the rounding of results in float32, and the error of central differences.
func closeTo(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i]-w)) <= 3e-6*(1+math.Abs(float64(w)))) {
			t.Errorf("%s: number %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// GroupNorm and EvoNorm-S0 and their gradients agree with values in PyTorch's layout.
func TestGroupNormGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/groupnorm.json")
	if err != nil {
		t.Fatal(err)
	}
	var g groupGolden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	x, dy, gamma, beta, v := g.channelsLast(g.X), g.channelsLast(g.DY), narrow(g.Gamma), narrow(g.Beta), narrow(g.V)
	call := func(k device.Kernel, in [][]float32, out ...int) [][]float32 {
		o := &kernel.Args{Dims: []int{g.N, g.H * g.W, g.C, g.Groups}, Attr: g.Eps, In: in}
		for _, n := range out {
			o.Out = append(o.Out, make([]float32, n))
		}
		runGroup(t, k, o)
		return o.Out
	}
	size, groups := len(x), g.N*g.Groups
	for _, c := range []struct {
		forward, backward device.Kernel
		in                [][]float32
		want              groupGoldenResult
		evo               bool
	}{
		{device.GroupNorm, device.GroupNormGrad, [][]float32{x, gamma, beta}, g.GroupNorm, false},
		{device.EvoNorm, device.EvoNormGrad, [][]float32{x, gamma, beta, v}, g.EvoNorm, true},
	} {
		out := call(c.forward, c.in, size, groups, groups)
		closeTo(t, fmt.Sprint(c.forward, ", y"), out[0], g.channelsLast(c.want.Y))
		closeTo(t, fmt.Sprint(c.forward, ", mean"), out[1], narrow(g.Mean))
		closeTo(t, fmt.Sprint(c.forward, ", variance"), out[2], narrow(g.Var))
		back, sizes := [][]float32{x, dy, gamma}, []int{size, g.C, g.C}
		if c.evo {
			back, sizes = append(back, v), append(sizes, g.C)
		}
		grads := call(c.backward, append(back, out[1], out[2]), sizes...)
		closeTo(t, fmt.Sprint(c.backward, ", dx"), grads[0], g.channelsLast(c.want.DX))
		closeTo(t, fmt.Sprint(c.backward, ", dgamma"), grads[1], narrow(c.want.DGamma))
		closeTo(t, fmt.Sprint(c.backward, ", dbeta"), grads[2], narrow(c.want.DBeta))
		if c.evo {
			closeTo(t, fmt.Sprint(c.backward, ", dv"), grads[3], narrow(c.want.DV))
		}
	}
}
