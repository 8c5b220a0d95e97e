package cuda

import (
	"fmt"
	"slices"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// Precision is how networks are computed; vectors are float32 with any of them.
type Precision = compiler.Precision

// The precisions: see [Precision].
const (
	FP32 = compiler.FP32
	TF32 = compiler.TF32
	FP16 = compiler.FP16
	BF16 = compiler.BF16
)

// PrecisionError says that a GPU cannot compute with a precision.
type PrecisionError struct {
	Precision Precision
	GPU       string
	CC        int // compute capability
}

func (e *PrecisionError) Error() string {
	return fmt.Sprintf("cuda: precision %s: %s has compute capability %d.%d, and bfloat16 needs 8.0 or newer: use precision fp16", e.Precision, e.GPU, e.CC/10, e.CC%10)
}

// runsOn returns an error where a GPU cannot compute with a precision.
func checkPrecision(p Precision, g driver.Properties) error {
	if p == BF16 && g.CC < 80 {
		return &PrecisionError{p, g.Name, g.CC}
	}
	return nil
}

// Option is a choice about a Device.
type Option func(*Device) error

// WithPrecision chooses how networks are computed; FP32 is the default.
func WithPrecision(p Precision) Option {
	return func(d *Device) error {
		if !slices.Contains(compiler.Precisions(), p) {
			return fmt.Errorf("cuda: precision %q: want one of %v", p, compiler.Precisions())
		}
		d.precision = p
		return nil
	}
}

// Deterministic takes only algorithms that give the same bits in each run, and chooses them without
// timing. Without it the fastest convolutions are taken, and the gradients of filters may be summed
// in another order each time.
func Deterministic(yes bool) Option {
	return func(d *Device) error {
		d.deterministic = yes
		return nil
	}
}

// compute is what cuBLAS is told.
func (d *Device) compute() cublas.Compute {
	if d.precision == TF32 {
		return cublas.ComputeTF32
	}
	return cublas.ComputeFloat32
}

// convMath is what cuDNN is told.
func (d *Device) convMath() cudnn.Math {
	if d.precision == FP32 {
		return cudnn.FMA
	}
	return cudnn.TensorOp
}

// SeparateLaunches gives each kernel a launch of its own where yes is true, as on a GPU without
// cooperative launches.
func SeparateLaunches(yes bool) Option {
	return func(d *Device) error {
		d.separateLaunches = yes
		return nil
	}
}
