package devicetest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fspda/device"
)

// HalfPrecision describes a device that stores activations and weights in 16 bits.
type HalfPrecision struct {
	Round    func(v []float32) // rounds to representable values
	Unit     float64           // the largest relative error of one rounding
	Smallest float64           // the largest absolute error of one rounding of a small number
	Every    int               // tests every shape whose number is a multiple of it; 0 tests all
	Wide     bool              // results are float32: only factors of products are rounded
}

// CheckHalfPrecision checks a kernel with 16-bit bounds. Given representable inputs, it allows the
// float32 error and one rounding of each output, one more rounding for dense layers and products
// before GELU, up to 64 terms summed in float32 for normalizations, and a rounding of each factor
// that attention computes.
func CheckHalfPrecision(t testing.TB, d device.Device, k device.Kernel, s HalfPrecision) {
	// the positions of maxima are neither parameters nor results
	if k == device.MaxPool || k == device.MaxPoolGrad || lacks(d, k) {
		return
	}
	for i, c := range calls(k) {
		if s.Every > 0 && i%s.Every != 0 {
			continue
		}
		s.check(t, d, c)
	}
}

// CheckHalfAttention is CheckHalfPrecision for attention, or its gradient, of one size: windows of
// so many tokens, heads, and numbers of a head.
func CheckHalfAttention(t testing.TB, d device.Device, k device.Kernel, s HalfPrecision, windows, tokens, heads,
	width int) {
	s.check(t, d, &device.Call{Kernel: k, Dims: []int{windows, tokens, heads, width}})
}

func (s HalfPrecision) check(t testing.TB, d device.Device, c *device.Call) {
	f := &field{TB: t, d: d}
	in := kernelInputs(c)
	for i := range in {
		if !(i == 1 && takesLabels(c.Kernel)) {
			s.Round(in[i])
		}
	}
	switch c.Kernel { // statistics are float32
	case device.LayerNormGrad, device.LayerNormPlainGrad, device.LayerNormGradAdd, device.LayerNormPlainGradAdd,
		device.RMSNormGrad:
		setRowStatistics(c, in)
	case device.AttentionGrad: // y and lse come from the rounded qkv, and lse is float32
		setAttention(c, in)
		if !s.Wide {
			s.Round(in[1])
		}
	}
	want, limit := evaluate(c, in)
	s.widen(c, in, want, limit)
	for _, p := range placements(c, in) {
		within(t, fmt.Sprintf("%s %v, %s", c.Kernel, c.Dims, p.name), p.run(f), want, limit)
	}
}

// reference bounds the float64 error of the variance of equal numbers.
const reference = 0x1p-80

// limit widens the float32 bounds.
func (s HalfPrecision) widen(c *device.Call, in [][]float32, want, b [][]float64) {
	factor := 2.0
	switch {
	case strings.HasPrefix(string(c.Kernel), "linear"), strings.HasPrefix(string(c.Kernel), "product-gelu"):
		factor = s.Unit / unit
	case isNorm(c.Kernel):
		factor = 64
		s.Smallest = max(s.Smallest, reference)
	}
	for i := range b {
		for j, w := range want[i] {
			b[i][j] = factor*b[i][j] + 2*s.Unit*math.Abs(w) + s.Smallest
		}
	}
	switch c.Kernel {
	case device.Attention:
		s.widenAttention(c, in, want, b)
	case device.AttentionGrad:
		s.widenAttentionGrad(c, in, b)
	}
}
