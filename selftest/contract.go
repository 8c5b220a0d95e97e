package selftest

import (
	"context"
	"fmt"

	"fspda/cuda/kernels/kerneltest"
	"fspda/device/devicetest"
	"fspda/train/algo/algotest"
)

// contract is the test that every device passes.
func (t Target) contract() (all []Check) {
	for _, c := range devicetest.Checks() {
		all = append(all, Check{"contract/" + c.Name, func(context.Context) (string, error) {
			if c.Networks && t.Precision != "fp32" {
				return "", &ErrLeftOut{"its bounds are those of fp32"}
			}
			r := &reporter{}
			c.Run(r, t.Device)
			return "", r.err()
		}})
	}
	return all
}

// kernels are those that the contract does not reach.
func (t Target) kernels() (all []Check) {
	for _, c := range kerneltest.Checks() {
		all = append(all, Check{"kernels/" + c.Name, func(context.Context) (string, error) {
			if t.Kernels == nil {
				return "", &ErrLeftOut{"the device has no kernels of its own"}
			}
			r := &reporter{}
			c.Run(r, t.Kernels)
			return "", r.err()
		}})
	}
	return all
}

// algorithms play to their golden values.
func (t Target) algorithms() (all []Check) {
	for _, g := range algotest.Goldens() {
		all = append(all, Check{"algorithms/" + g.Name, func(context.Context) (string, error) {
			far, err := g.Error(t.Device)
			if err == nil && !(far <= algotest.Float32Bound) {
				err = fmt.Errorf("the models are %.2g from the golden ones, want %.2g at most", far,
					algotest.Float32Bound)
			}
			return fmt.Sprintf("%.1e of %.0e", far, algotest.Float32Bound), err
		}})
	}
	return all
}
