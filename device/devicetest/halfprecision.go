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
	Smallest float64           // the largest absolute error of one rounding of what is small
	Every    int               // tests one in so many shapes; 0 tests all
}

// CheckHalfPrecision checks a kernel with 16-bit bounds. Given representable inputs, it allows the
// float32 error and one rounding of each output, one more rounding for dense layers, and up to 64
// terms summed in float32 for normalizations.
func CheckHalfPrecision(t testing.TB, d device.Device, k device.Kernel, s HalfPrecision) {
	// the positions of maxima are neither parameters nor results
	if k == device.MaxPool || k == device.MaxPoolGrad || lacks(d, k) {
		return
	}
	f := &field{TB: t, d: d}
	for i, c := range calls(k) {
		if s.Every > 0 && i%s.Every != 0 {
			continue
		}
		in := kernelInputs(c)
		for i := range in {
			if !(i == 1 && takesLabels(k)) {
				s.Round(in[i])
			}
		}
		switch c.Kernel { // what is computed of the rounded inputs is float32
		case device.LayerNormGrad, device.LayerNormPlainGrad, device.LayerNormGradAdd, device.LayerNormPlainGradAdd,
			device.RMSNormGrad:
			setRowStatistics(c, in)
		case device.AttentionGrad:
			setAttentionResults(c, in)
		}
		want, limit := evaluate(c, in)
		s.widen(c, want, limit)
		for _, p := range placements(c, in) {
			within(t, fmt.Sprintf("%s %v, %s", k, c.Dims, p.name), p.run(f), want, limit)
		}
	}
}

// reference bounds the float64 error of the variance of equal numbers.
const reference = 0x1p-80

// limit widens the float32 bounds.
func (s HalfPrecision) widen(c *device.Call, want, b [][]float64) {
	factor := 2.0
	switch {
	case strings.HasPrefix(string(c.Kernel), "linear"):
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
}
