package jpeg

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The assembly has the bits of inverseGo, for coefficients of photographs and for any others.
func TestInverseTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		pairs := 1 + r.IntN(4)
		blocks, quant := make([]int16, 128*pairs), new([64]int16)
		for i := range quant {
			quant[i] = int16(1 + r.IntN(255))
		}
		for i := range blocks {
			if round < 100 {
				blocks[i] = int16(r.NormFloat64() * 200 / float64(1+i%64) / float64(quant[i%64]) * 8)
			} else {
				blocks[i] = int16(r.Uint32())
			}
		}
		stride := 16*pairs + r.IntN(5)
		got, want := make([]uint8, 8*stride), make([]uint8, 8*stride)
		inverse(got, stride, blocks, quant, pairs)
		inverseGo(want, stride, blocks, quant, pairs)
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
	}
}
