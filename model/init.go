package model

import (
	"math"

	"fspda/internal/rng"
)

// Init returns a fresh parameter vector, of length Dim: every weight and every bias uniform in ±1/√fan-in of its layer. Numbers
// come from the stream "init" of the run seed, one per parameter in flat order, so every agent that knows the seed starts at
// the same point.
func (n *Network) Init(seed uint64) []float32 {
	x := make([]float32, n.Dim())
	stream := rng.New(seed, "init")
	for _, t := range n.layout.tensors {
		bound := float32(1 / math.Sqrt(float64(t.FanIn)))
		for i := t.Offset; i < t.Offset+t.Size; i++ {
			x[i] = (2*stream.Float32() - 1) * bound // 2u-1 is exact, so this rounds once on every machine
		}
	}
	return x
}
