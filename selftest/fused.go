package selftest

import (
	"context"
	"errors"
	"fmt"

	"fspda/device"
	"fspda/model"
)

// fuser is a device with kernels that compute several calls of code. Where they are faster a run
// uses them, but the networks here use deterministic kernels.
type fuser interface {
	TryFused(code *device.Code, visit func(what string, far float64, err error)) (fits bool, err error)
}

// fused returns the check of such kernels, at the sizes of training a large network: some are made
// for many rows only, and errors in the order of memory accesses may need many blocks.
func (t Target) fused() []Check {
	dev, ok := t.Device.(fuser)
	if !ok {
		return nil
	}
	return []Check{{"fused/resnet50", func(context.Context) (string, error) {
		if t.Small {
			return tryFused(dev, model.ResNetOptions{Height: 16, Width: 16, BaseWidth: 8}, 4)
		}
		return tryFused(dev, model.ResNetOptions{Height: 224, Width: 224}, 128)
	}}}
}

// tryFused compares the fused kernels of the gradient of a ResNet-50 with those that they replace.
// A batch for which there is not enough memory is halved.
func tryFused(dev fuser, o model.ResNetOptions, batch int) (string, error) {
	o.Depth, o.Classes = 50, 10
	net, err := model.ResNet(o)
	if err != nil {
		return "", err
	}
	for ; ; batch /= 2 {
		plan, err := net.Plan(batch, model.Step)
		if err != nil {
			return "", err
		}
		kinds, worst := 0, 0.0
		var wrong []error
		fits, err := dev.TryFused(plan.Code(), func(what string, far float64, err error) {
			kinds++
			if worst = max(worst, far); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", what, err))
			}
		})
		switch {
		case !fits && batch > 1:
			continue
		case !fits:
			return "", errors.New("there is not enough memory for a batch of 1")
		case err == nil && kinds == 0:
			return "", SkipError("the device has no fused kernels in this precision")
		}
		return fmt.Sprintf("%d kinds of kernels within %.1e of separate ones, batch %d", kinds, worst, batch),
			errors.Join(append(wrong, err)...)
	}
}
