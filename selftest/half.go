package selftest

import (
	"context"
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/dist"
)

// halfBounds holds the rounding properties of 16-bit numbers, by precision.
var halfBounds = map[string]devicetest.HalfPrecision{
	"fp16": {Round: dist.FP16.Round, Unit: 0x1p-11, Smallest: 0x1p-24},
	"bf16": {Round: dist.BF16.Round, Unit: 0x1p-8, Smallest: 0x1p-126},
}

// halfPrecision returns checks of every kernel of a 16-bit program, in place of those of the
// contract.
func (t Target) halfPrecision() (all []Check) {
	s, ok := halfBounds[t.Precision]
	if !ok {
		return nil
	}
	if t.Small {
		s.Every = 7
	}
	for _, k := range device.Kernels() {
		all = append(all, Check{t.Precision + "/" + string(k), func(context.Context) (string, error) {
			return "", report(func(r testing.TB) { devicetest.CheckHalfPrecision(r, t.Device, k, s) })
		}})
	}
	return all
}
