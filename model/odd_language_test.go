package model

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/testing/golden"
)

// Networks of odd sizes: one window, one token, heads of one to seventy numbers, windows shorter
// than the block and longer than those whose scores are computed whole. The numbers are those of
// PyTorch in float64, from parameters and tokens filled as the golden values are. Along is the
// cosine between the gradient and numbers filled as tensor 500.
func TestLanguageModelsOfOddSizes(t *testing.T) {
	for _, c := range []struct {
		golden.Network
		tokens int
		along  float64
	}{
		{golden.Network{Arch: "gpt", GELU: "tanh", Layers: 1, Heads: 1, Width: 5, Hidden: 20, Block: 7, Vocab: 3,
			Batch: 1, Seed: 0, Bias: true, Loss: 1.96862671822, GradNorm: 2.84724166053}, 7, 0.025741445},
		{golden.Network{Arch: "gpt", GELU: "tanh", Layers: 2, Heads: 7, Width: 7, Hidden: 28, Block: 1, Vocab: 3,
			Batch: 1, Seed: 3, Bias: true, Loss: 1.20214226026, GradNorm: 11.2567854117}, 1, -0.001229471},
		{golden.Network{Arch: "gpt", GELU: "tanh", Layers: 1, Heads: 5, Width: 25, Hidden: 100, Block: 13, Vocab: 17,
			Batch: 3, Seed: 1, Bias: true, Loss: 3.57858457215, GradNorm: 2.79050612769}, 13, 0.000153375},
		{golden.Network{Arch: "gpt", GELU: "erf", Layers: 3, Heads: 3, Width: 15, Hidden: 60, Block: 9, Vocab: 11,
			Batch: 2, Seed: 2, Bias: false, Loss: 3.65134036755, GradNorm: 5.6344435497}, 4, 0.014840477},
		{golden.Network{Arch: "gpt", GELU: "tanh", Layers: 1, Heads: 2, Width: 10, Hidden: 40, Block: 257, Vocab: 65,
			Batch: 1, Seed: 6, Bias: true, Loss: 4.82342719675, GradNorm: 0.877717541873}, 257, 0.001944365},
		{golden.Network{Arch: "gpt", GELU: "erf", Layers: 2, Heads: 1, Width: 70, Hidden: 280, Block: 300, Vocab: 9,
			Batch: 1, Seed: 7, Bias: true, Loss: 2.70118289128, GradNorm: 4.39035288189}, 300, 0.003036465},
		{golden.Network{Arch: "gpt", GELU: "tanh", Layers: 1, Heads: 3, Width: 9, Hidden: 36, Block: 256, Vocab: 3,
			Batch: 2, Seed: 8, Bias: true, Loss: 1.58729735087, GradNorm: 1.68454659044}, 256, 0.010852083},
		{golden.Network{Arch: "llama", GELU: "", Layers: 1, Heads: 1, Width: 2, Hidden: 64, Block: 1, Vocab: 3,
			Batch: 1, Seed: 0, Bias: true, Loss: 0.195552917931, GradNorm: 1.48886852371}, 1, -0.054656360},
		{golden.Network{Arch: "llama", GELU: "", Layers: 2, Heads: 3, Width: 18, Hidden: 5, Block: 11, Vocab: 7,
			Batch: 2, Seed: 1, Bias: true, Loss: 2.17834740246, GradNorm: 4.52510333715}, 11, -0.021132141},
		{golden.Network{Arch: "llama", GELU: "", Layers: 2, Heads: 2, Width: 20, Hidden: 64, Block: 33, Vocab: 12,
			Batch: 3, Seed: 3, Bias: true, Loss: 3.46545053531, GradNorm: 3.65527718089}, 12, 0.005767426},
		{golden.Network{Arch: "llama", GELU: "", Layers: 1, Heads: 13, Width: 26, Hidden: 128, Block: 14, Vocab: 29,
			Batch: 2, Seed: 5, Bias: true, Loss: 3.8963580843, GradNorm: 3.84385835518}, 14, -0.004031263},
	} {
		t.Run(fmt.Sprintf("%s-%d-%d-%d", c.Arch, c.Heads, c.Width, c.tokens), func(t *testing.T) {
			n, b := (&goldenNetwork{Network: c.Network}).open(t), device.Batch{Length: c.tokens}
			for w := range c.Batch {
				b.At = append(b.At, int64(len(b.Tokens)))
				for s := range c.tokens + 1 {
					b.Tokens = append(b.Tokens, uint16(golden.Fill(1000+w, s, c.Seed)%int64(c.Vocab)))
				}
			}
			dev, grad := cpu.New(), make([]float32, n.Dim())
			loss, err := NewEngine(n, dev).Grad(dev.Wrap(grad), dev.Wrap(filledParams(n, c.Seed)), b)
			if err != nil || !(math.Abs(loss-c.Loss) <= 1e-6*c.Loss) {
				t.Fatalf("loss %.12v, want %.12v (%v)", loss, c.Loss, err)
			}
			var square, others, product float64
			for i, g := range grad {
				v, other := float64(g), float64(golden.Number(500, i, 0, 0, 1))
				square, others, product = square+v*v, others+other*other, product+v*other
			}
			norm := math.Sqrt(square)
			if !(math.Abs(norm-c.GradNorm) <= 3e-6*c.GradNorm) {
				t.Errorf("the norm of the gradient is %v, want %v", norm, c.GradNorm)
			}
			if along := product / norm / math.Sqrt(others); !(math.Abs(along-c.along) <= 1e-6) {
				t.Errorf("the cosine of the gradient is %.9f, want %.9f", along, c.along)
			}
		})
	}
}
