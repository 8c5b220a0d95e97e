package cuda

import (
	"fmt"

	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
)

// Precision is how networks are computed. Vectors are float32 with any of them.
type Precision string

const (
	FP32 Precision = "fp32" // as the CPU does
	TF32 Precision = "tf32" // factors of matrix products and convolutions rounded to 10 bits, on GPUs since compute capability 8.0
)

// Precisions lists them.
func Precisions() []Precision { return []Precision{FP32, TF32} }

// Option is a choice about a Device.
type Option func(*Device) error

// WithPrecision chooses how networks are computed; FP32 is the default.
func WithPrecision(p Precision) Option {
	return func(d *Device) error {
		if p != FP32 && p != TF32 {
			return fmt.Errorf("cuda: precision %q: want %s or %s", p, FP32, TF32)
		}
		d.precision = p
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
	if d.precision == TF32 {
		return cudnn.TensorOp
	}
	return cudnn.FMA
}
