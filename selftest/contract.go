package selftest

import (
	"context"
	"fmt"
	"testing"

	"fspda/cuda/kernels/kerneltest"
	"fspda/device/devicetest"
	"fspda/train/algo/algotest"
)

// contract returns the checks that every device must pass.
func (t Target) contract() (all []Check) {
	for _, c := range devicetest.Checks() {
		all = append(all, Check{"contract/" + c.Name, func(context.Context) (string, error) {
			if c.Networks && t.Precision != "fp32" {
				return "", SkipError("its bounds hold for fp32 only")
			}
			return "", report(func(r testing.TB) { c.Run(r, t.Device) })
		}})
	}
	return all
}

// kernels returns the checks of kernels that the contract does not reach.
func (t Target) kernels() (all []Check) {
	for _, c := range kerneltest.Checks() {
		all = append(all, Check{"kernels/" + c.Name, func(context.Context) (string, error) {
			if t.Kernels == nil {
				return "", SkipError("the device has no kernels of its own")
			}
			return "", report(func(r testing.TB) { c.Run(r, t.Kernels) })
		}})
	}
	return all
}

func (t Target) algorithms() (all []Check) {
	for _, g := range algotest.Goldens() {
		all = append(all, Check{"algorithms/" + g.Name, func(context.Context) (string, error) {
			far, err := g.Error(t.Device)
			if err == nil && !(far <= algotest.Float32Bound) {
				err = fmt.Errorf("the models differ from the golden values by %.2g, at most %.2g is allowed", far,
					algotest.Float32Bound)
			}
			return fmt.Sprintf("%.1e of %.0e", far, algotest.Float32Bound), err
		}})
	}
	return all
}
