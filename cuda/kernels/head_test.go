package kernels_test

import (
	"math"
	"slices"
	"testing"

	"fspda/cuda/kernels"
)

// The sigmoid of a head is within 1.5 units in the last place of the correct one, and keeps NaN.
func TestHeadSigmoid(t *testing.T) {
	const m, width, classes = 1000, 64, 2
	h := onHost(t)
	sums := make([]float32, m*width)
	for i := range sums {
		x := float64(i)/float64(len(sums))*2 - 1
		if sums[i] = float32(87 * x); i%2 != 0 {
			sums[i] = float32(math.Copysign(math.Exp(-40*math.Abs(x)), x))
		}
	}
	copy(sums, []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), 1e30, float32(math.NaN()), 87, -87})
	hidden, dh := make([]float32, m*width), make([]float32, m*width)
	args := map[string]kernels.Address{"part": at(h, sums), "parts": 1, "aux": at(h, make([]float32, width)),
		"epilogue": kernels.Address(kernels.BiasSigmoid), "h": at(h, hidden),
		"w": at(h, make([]float32, classes*width)), "bias": at(h, make([]float32, classes)),
		"labels": at(h, make([]float32, m)),
		"bad":    at(h, []uint32{kernels.NoBadRow}), "row_loss": at(h, make([]float64, m)),
		"dz": at(h, make([]float32, m*classes)), "dh": at(h, dh), "back": kernels.Address(kernels.SigmoidGrad), "m": m,
		"rows": 50, "width": width, "classes": classes}
	all := kernels.All()
	k := all[slices.IndexFunc(all, func(k *kernels.Kernel) bool { return k.Name == "head" })]
	c := kernels.Call{Kernel: k, Launch: kernels.Launch{Grid: [3]uint32{m / 50, 1, 1}, Block: [3]uint32{256, 1, 1}}}
	for _, p := range k.Params {
		c.Args = append(c.Args, uint64(args[p.Name]))
	}
	h.run(c)
	worst := 0.0
	for i, x := range sums {
		if x != x {
			if hidden[i] == hidden[i] {
				t.Errorf("the sigmoid of NaN is %v", hidden[i])
			}
			continue
		}
		want := 1 / (1 + math.Exp(-float64(x)))
		unit := float64(math.Nextafter32(float32(want), 2) - float32(want))
		worst = max(worst, math.Abs(float64(hidden[i])-want)/unit)
	}
	t.Logf("at most %.3f units in the last place", worst)
	if worst > 1.5 {
		t.Errorf("the error is up to %v units in the last place, want 1.5", worst)
	}
}
