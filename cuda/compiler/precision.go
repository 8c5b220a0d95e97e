package compiler

import (
	"fspda/cuda/kernels"
)

// Precision is the arithmetic of a network's calls. Vectors are float32 in all of them.
type Precision string

const (
	// FP32 computes in float32, like the CPU.
	FP32 Precision = "fp32"
	// TF32 rounds the factors of matrix products and convolutions to 10 bits. It needs compute
	// capability 8.0.
	TF32 Precision = "tf32"
	// FP16 stores activations, and copies of the weights for products, in IEEE half precision. The
	// loss has a dynamic scale.
	FP16 Precision = "fp16"
	// BF16 is FP16 with bfloat16, which needs no loss scale, but compute capability 8.0.
	BF16 Precision = "bf16"
)

// Precisions returns all precisions.
func Precisions() []Precision { return []Precision{FP32, TF32, FP16, BF16} }

func (p Precision) Element() kernels.Element {
	switch p {
	case FP16:
		return kernels.F16
	case BF16:
		return kernels.BF16
	}
	return kernels.F32
}
