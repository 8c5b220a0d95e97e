package compiler

import (
	"fspda/cuda/kernels"
)

// Precision is how networks are computed. Vectors are float32 with any of them.
type Precision string

const (
	FP32 Precision = "fp32" // as the CPU does
	// factors of matrix products and convolutions rounded to 10 bits, on GPUs since compute
	// capability 8.0
	TF32 Precision = "tf32"
	FP16 Precision = "fp16" // activations and the weights that products read in IEEE's half, with a dynamic loss scale
	BF16 Precision = "bf16" // the same in bfloat16, which needs no scale, on GPUs since compute capability 8.0
)

// Precisions lists them.
func Precisions() []Precision { return []Precision{FP32, TF32, FP16, BF16} }

// element is the type of activations.
func (p Precision) Element() kernels.Element {
	switch p {
	case FP16:
		return kernels.F16
	case BF16:
		return kernels.BF16
	}
	return kernels.F32
}
