package devicetest

import (
	"testing"

	"fspda/device"
)

// Every kernel has an interpreter and calls, whose dimensions exceed a vector register on each
// axis.
func TestEveryKernelIsCovered(t *testing.T) {
	if len(interpreters) != len(device.Kernels()) {
		t.Errorf("%d interpreters of %d kernels", len(interpreters), len(device.Kernels()))
	}
	for _, k := range device.Kernels() {
		if interpreters[k] == nil {
			t.Errorf("%s has no interpreter", k)
		}
		list := calls(k)
		axes := len(list[0].Dims)
		low, high := make([]int, axes), make([]int, axes)
		copy(low, list[0].Dims)
		for _, c := range list {
			in, out := shape(c)
			if len(in) == 0 || len(out) == 0 {
				t.Errorf("%s has %d inputs and %d outputs", k, len(in), len(out))
			}
			for i, d := range c.Dims {
				low[i], high[i] = min(low[i], d), max(high[i], d)
			}
		}
		for i := range low {
			least := 1 // a padding starts at 0
			if i == 3 && (k == device.RoPE || k == device.RoPEGrad) || i == 2 && k == device.RoPEStep {
				least = 2 // the width of a head is even
			}
			if low[i] > least || high[i] < reach(k, i) {
				t.Errorf("%s: dimension %d goes from %d to %d", k, i, low[i], high[i])
			}
		}
	}
}

// reach returns the size that a dimension must reach. Images, windows, strides and paddings, windows
// of tokens and heads are not vectorized axes.
func reach(k device.Kernel, axis int) int {
	switch k {
	case device.Conv, device.ConvGradX, device.ConvGradW:
		if axis == 0 || axis >= 5 {
			return 2
		}
	case device.RoPE, device.RoPEGrad, device.Attention, device.AttentionGrad:
		if axis == 0 || axis == 2 {
			return 2
		}
		return 10
	case device.LastToken:
		if axis < 2 {
			return 2
		}
	case device.RoPEStep, device.AttentionStep:
		return 3
	case device.EmbedStep:
		if axis == 0 {
			return 2
		}
	case device.Embed, device.EmbedGrad, device.EmbedGradAdd:
		if axis == 4 {
			return 30
		}
	}
	return 33
}
