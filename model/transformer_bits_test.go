package model

import (
	"fmt"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/cpu/isa"
	"fspda/device"
)

// A gradient has the same bits with every instruction set and on 1 to 3 threads, for windows whose
// attention is computed whole and in blocks.
func TestTransformerBits(t *testing.T) {
	used := isa.Active
	defer func() { isa.Active = used }()
	for _, c := range []struct {
		name    string
		windows int
		Transformer
	}{
		{"gpt-nano", 16, Transformer{Layers: 1, Heads: 2, Width: 64, Block: 64}},
		{"gpt-nano", 4, Transformer{Layers: 1, Heads: 3, Width: 39, Block: 300, GELU: "erf", NoBias: true}},
		{"llama-nano", 16, Transformer{Layers: 1, Heads: 2, Width: 64, Block: 64}},
	} {
		n, err := Open(c.name, Options{Classes: 65, Transformer: c.Transformer})
		if err != nil {
			t.Fatal(err)
		}
		b := device.Batch{Tokens: make([]uint16, 400), Length: n.inputs}
		for i := range b.Tokens {
			b.Tokens[i] = uint16(i * i % 65)
		}
		for i := range c.windows {
			b.At = append(b.At, int64(i))
		}
		var want []float32
		for _, set := range isa.Available() {
			isa.Active = set
			for threads := 1; threads <= 3; threads++ {
				if set == isa.Go && threads != 2 { // the loops in Go are slow
					continue
				}
				dev := cpu.New(cpu.Threads(threads))
				grad := make([]float32, n.Dim()+1)
				loss, err := NewEngine(n, dev).Grad(dev.Wrap(grad[1:]), dev.Wrap(round(transformerParams(n))), b)
				dev.Close()
				if err != nil {
					t.Fatal(err)
				}
				if grad[0] = float32(loss); want == nil {
					want = grad
				}
				if !slices.Equal(grad, want) {
					at := slices.IndexFunc(n.layout.tensors, func(p Tensor) bool {
						return !slices.Equal(grad[1+p.Offset:][:p.Size], want[1+p.Offset:][:p.Size])
					})
					t.Errorf("%s: %s on %d threads: other bits of loss %v, %v, first in %s", n.name, fmt.Sprint(set),
						threads, loss, want[0], n.layout.tensors[max(at, 0)].Name)
				}
			}
		}
	}
}
