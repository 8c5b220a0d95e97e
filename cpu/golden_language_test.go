package cpu

import (
	"fmt"
	"math"
	"testing"

	"fspda/device"
	"fspda/internal/testing/golden"
)

// The kernels agree with PyTorch in float64.
func TestGoldenLanguageKernels(t *testing.T) {
	golden.Kernels(t, func(k device.Kernel, attr float64, dims []int, in [][]float32, out ...int) [][]float32 {
		var results [][]float32
		for _, n := range out {
			results = append(results, make([]float32, n))
		}
		if err := Call(&device.Call{Kernel: k, Dims: dims, Attr: attr}, in, results); err != nil {
			t.Fatal(err)
		}
		return results
	})
}

// Steps of AdamW with and without decay agree with PyTorch in float64.
func TestGoldenAdamW(t *testing.T) {
	var section struct {
		AdamW struct {
			LR, Eps float64
			Betas   []float64
			P       []float64
			G       [][]float64
			Runs    []struct {
				Decay float64
				Steps []struct{ P, M, V []float64 }
			}
		}
	}
	golden.Section(t, "kernels", &section)
	a, d := section.AdamW, New()
	for _, run := range a.Runs {
		p, n := golden.Single(a.P), len(a.P)
		x, m, v := d.Wrap(p), d.NewVector(n), d.NewVector(n)
		for k, step := range run.Steps {
			u, power := d.Wrap(golden.Single(a.G[k])), float64(k+1)
			d.Do(device.AdamW(device.Adam{
				Beta1: a.Betas[0], Rest1: 1 - a.Betas[0], Scale1: 1 / (1 - math.Pow(a.Betas[0], power)),
				Beta2: a.Betas[1], Rest2: 1 - a.Betas[1], Scale2: 1 / math.Sqrt(1-math.Pow(a.Betas[1], power)),
				Eps: a.Eps,
			}, u, m, v, x))
			d.Do(device.Combine(x, device.Term{A: 1 - a.LR*run.Decay, V: x}, device.Term{A: -a.LR, V: u}))
			what := fmt.Sprintf("step %d of AdamW with decay %v, ", k, run.Decay)
			golden.Near(t, what+"p", p, step.P, 5e-7)
			golden.Near(t, what+"m", d.Floats(m), step.M, 5e-7)
			golden.Near(t, what+"v", d.Floats(v), step.V, 5e-7)
		}
	}
}
