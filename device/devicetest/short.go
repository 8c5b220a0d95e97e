package devicetest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fspda/device"
)

// Short says how a device computes networks whose activations and weights have 16 bits.
type HalfPrecision struct {
	Round    func(v []float32) // to what they can hold
	Unit     float64           // the largest relative error of one rounding
	Smallest float64           // the largest absolute error of one rounding of what is small
	Every    int               // looks at one in so many shapes; 0 is all
}

// CheckShort holds a kernel to the bounds of 16 bits: of inputs that they can hold, the errors of
// float32 and a rounding of each output; of what a dense layer passes on, one more; and of
// normalisations, up to 64 terms that are summed in float32.
func CheckHalfPrecision(t testing.TB, d device.Device, k device.Kernel, s HalfPrecision) {
	// their places are neither parameters nor results
	if k == device.MaxPool || k == device.MaxPoolGrad {
		return
	}
	for i, c := range calls(k) {
		if s.Every > 0 && i%s.Every != 0 {
			continue
		}
		in := kernelInputs(c)
		wide := make([][]float64, len(in))
		for i := range in {
			if !(i == 1 && takesLabels(k)) {
				s.Round(in[i])
			}
			wide[i] = widen(in[i])
		}
		_, sizes := shape(c)
		want := make([][]float64, len(sizes))
		for i, n := range sizes {
			want[i] = make([]float64, n)
		}
		Interpret(c, wide, want)
		limit := s.limit(c, want, bounds(c, wide, want))
		for _, p := range []placement{fromParams(c, in), fromInput(c, in)} {
			got, err := p.run(t, d)
			if err != nil {
				t.Errorf("%s %v: %v", k, c.Dims, err)
				return
			}
			within(t, fmt.Sprintf("%s %v, %s", k, c.Dims, p.name), got, want, limit)
		}
	}
}

// reference is what float64 loses of the variance of equal numbers.
const reference = 0x1p-80

// limit widens the bounds of float32.
func (s HalfPrecision) limit(c *device.Call, want, b [][]float64) [][]float64 {
	factor := 2.0
	switch k := string(c.Kernel); {
	case strings.HasPrefix(k, "linear"):
		factor = s.Unit / unit
	case strings.HasPrefix(k, "batch-norm"), strings.HasPrefix(k, "normalize"):
		factor = 64
		s.Smallest = max(s.Smallest, reference)
	}
	for i := range b {
		for j, w := range want[i] {
			b[i][j] = factor*b[i][j] + 2*s.Unit*math.Abs(w) + s.Smallest
		}
	}
	return b
}
