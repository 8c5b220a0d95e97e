package selftest

import (
	"context"
	"fmt"
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

// halfPrecision returns checks of every kernel of a 16-bit program, in place of the checks of the
// contract.
func (t Target) halfPrecision() (all []Check) {
	s, ok := halfBounds[t.Precision]
	if !ok {
		return nil
	}
	if t.Small {
		s.Every = 12
	}
	s.Wide = t.Device.Features().Host != nil
	for _, k := range device.Kernels() {
		all = append(all, Check{t.Precision + "/" + string(k), func(context.Context) (string, error) {
			return "", report(func(r testing.TB) { devicetest.CheckHalfPrecision(r, t.Device, k, s) })
		}})
	}
	tokens, heads := 1024, 12 // sizes of GPT-2
	if t.Small {
		tokens, heads = 150, 2
	}
	for _, k := range []device.Kernel{device.Attention, device.AttentionGrad} {
		all = append(all, Check{t.Precision + "/" + string(k) + " of GPT-2", func(context.Context) (string, error) {
			return fmt.Sprintf("%d tokens, %d heads of 64", tokens, heads), report(func(r testing.TB) {
				devicetest.CheckHalfAttention(r, t.Device, k, s, 1, tokens, heads, 64)
			})
		}})
	}
	return all
}
