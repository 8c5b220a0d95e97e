package golden

import (
	"math"
	"strings"

	"fspda/device"
)

// Network is a language model of the section networks: its settings, and the loss and the gradient
// of one batch. [FillTensor] gives its parameters.
type Network struct {
	Arch, GELU                                              string
	Layers, Heads, Width, Block, Vocab, Batch, Seed, Hidden int
	Bias                                                    bool
	Tokens                                                  [][]uint16 // a window each
	Loss                                                    float64
	GradNorm                                                float64   `json:"grad_norm"`
	GradFlat                                                []float64 `json:"grad_flat"`
	Tensors                                                 map[string]Tensor
}

// Tensor describes a tensor of a network: its parameters and its part of the gradient.
type Tensor struct {
	Shape []int
	Param struct {
		Norm   float64
		First8 []float64
	}
	Grad struct {
		Norm, Sum     float64
		First8, Last4 []float64
	}
}

// Stream joins the windows to one stream.
func (g *Network) Stream() device.Batch {
	b := device.Batch{Length: g.Block}
	for _, w := range g.Tokens {
		b.At = append(b.At, int64(len(b.Tokens)))
		b.Tokens = append(b.Tokens, w...)
	}
	return b
}

// Fill is whole number i of tensor t, from 0 to 10006.
func Fill(t, i, seed int) int64 {
	a, b := int64(i+1), int64(t+1)
	return (131*a*a + 977*a*b + 7919*b + 15485863*int64(seed)) % 10007
}

// Number is number i of tensor t, within amplitude of base.
func Number(t, i, seed int, base, amplitude float64) float32 {
	return float32(base + float64(amplitude*(float64(Fill(t, i, seed))/5003-1)))
}

// FillTensor fills the parameters of tensor t of a language model.
func FillTensor(dst []float32, t int, name string, shape []int, seed int) {
	base, amplitude := 0.0, 1.4/math.Sqrt(float64(shape[len(shape)-1]))
	switch {
	case t == 0 || name == "wpe.weight":
		amplitude = 2 / math.Sqrt(float64(shape[1]))
	case len(shape) == 1 && strings.HasSuffix(name, ".weight"):
		base, amplitude = 1, 0.2
	case len(shape) == 1:
		amplitude = 0.1
	}
	for i := range dst {
		dst[i] = Number(t, i, seed, base, amplitude)
	}
}
