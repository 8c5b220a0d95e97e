package compiler

import (
	"fspda/cuda/kernels"
)

// Precision is the arithmetic of a network's calls. Vectors are float32 in all of them.
type Precision string

const (
	FP32 Precision = "fp32" // as the CPU does
	// factors of matrix products and convolutions rounded to 10 bits; needs compute capability 8.0
	TF32 Precision = "tf32"
	// activations and the weights that products read in IEEE's half, with a dynamic loss scale
	FP16 Precision = "fp16"
	// the same in bfloat16, which needs no scale, on GPUs since compute capability 8.0
	BF16 Precision = "bf16"
)

// Precisions returns all precisions.
func Precisions() []Precision { return []Precision{FP32, TF32, FP16, BF16} }

// Element returns the number type of activations.
func (p Precision) Element() kernels.Element {
	switch p {
	case FP16:
		return kernels.F16
	case BF16:
		return kernels.BF16
	}
	return kernels.F32
}
