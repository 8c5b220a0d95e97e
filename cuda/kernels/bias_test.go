package kernels_test

import (
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
)

func TestAddBias(t *testing.T) {
	h := onHost(t)
	const m, c = 70, 37
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		rawX, x := encode(h, e, numbers(1, m*c))
		rawDY, dy := encode(h, e, numbers(2, m*c))
		b := numbers(3, c)
		for f, k := range map[kernels.Activation]device.Kernel{kernels.Identity: device.AddBias,
			kernels.ReLUOf: device.AddBiasReLU} {
			y, want := make([]byte, len(rawX)), make([]float32, m*c)
			h.run(kernels.ChannelBias(e, at(h, y), at(h, rawX), at(h, b), m, c, f))
			onCPUCall(t, k, []int{m, c}, 0, [][]float32{x, b}, [][]float32{want})
			_, want = encode(h, e, want)
			sameBits(t, string(k), decode(h, e, y), want)
			if f != kernels.ReLUOf {
				continue
			}
			dx, db := make([]byte, len(rawX)), make([]float32, c)
			h.run(kernels.ActivateGrad(e, at(h, dx), at(h, y), at(h, rawDY), m*c, f),
				kernels.ColumnSums(e, at(h, db), at(h, dx), m, c))
			wantDX, wantDB := make([]float32, m*c), make([]float32, c)
			onCPUCall(t, device.AddBiasReLUGrad, []int{m, c}, 0, [][]float32{want, dy}, [][]float32{wantDX, wantDB})
			sameBits(t, "dx", decode(h, e, dx), wantDX)
			sameBits(t, "db", db, wantDB)
		}
	}
}
