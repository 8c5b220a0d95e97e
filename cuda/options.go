package cuda

import (
	"fmt"
	"slices"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// Precision is the arithmetic of networks; vectors are float32 in all of them.
type Precision = compiler.Precision

// The precisions: see [Precision].
const (
	FP32 = compiler.FP32
	TF32 = compiler.TF32
	FP16 = compiler.FP16
	BF16 = compiler.BF16
)

// PrecisionError says that a GPU does not support a precision.
type PrecisionError struct {
	Precision Precision
	GPU       string
	CC        int // compute capability
}

func (e *PrecisionError) Error() string {
	instead := map[Precision]Precision{BF16: FP16, TF32: FP32}[e.Precision]
	return fmt.Sprintf("cuda: precision %s: %s has compute capability %d.%d, want 8.0 or newer: use precision %s",
		e.Precision, e.GPU, e.CC/10, e.CC%10, instead)
}

// checkPrecision returns an error where a GPU does not support a precision.
func checkPrecision(p Precision, g driver.Properties) error {
	if (p == BF16 || p == TF32) && g.CC < 80 {
		return &PrecisionError{p, g.Name, g.CC}
	}
	return nil
}

// Option is a setting of a Device.
type Option func(*Device) error

// WithPrecision sets the arithmetic of networks. The default is FP32.
func WithPrecision(p Precision) Option {
	return func(d *Device) error {
		if !slices.Contains(compiler.Precisions(), p) {
			return fmt.Errorf("cuda: precision %q: want one of %v", p, compiler.Precisions())
		}
		d.precision = p
		return nil
	}
}

// Deterministic restricts convolutions to implementations that give the same bits in each run,
// chosen without timing. Otherwise the fastest are chosen, and gradients of filters may be summed
// in another order in each run.
func Deterministic(yes bool) Option {
	return func(d *Device) error {
		d.deterministic = yes
		return nil
	}
}

// compute returns the precision for cuBLAS.
func (d *Device) compute() cublas.Compute {
	if d.precision == TF32 {
		return cublas.ComputeTF32
	}
	return cublas.ComputeFloat32
}

// convMath returns the precision for cuDNN.
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
