package model

import (
	"math"
	"sync"

	"fspda/internal/rng"
)

// start is how a tensor is filled at first.
type start struct {
	rule  rule
	scale float64
}

// rule is a distribution.
type rule uint8

const (
	uniform  rule = iota // in ±1/√fan-in
	normal               // of mean 0 and deviation scale
	constant             // scale
)

// fanOutScale is the deviation of a filter that keeps the size of gradients: variance
// 2/(side²·outputs).
func fanOutScale(fanOut int) float64 { return math.Sqrt(2 / float64(fanOut)) }

// Init returns a fresh parameter vector, of length Dim. A dense layer's weights and biases are
// uniform in ±1/√fan-in; in a residual network a filter is normal with variance 2/(side²·outputs),
// the last layer's weight normal with deviation 0.01, and batch norm has scale 1 and shift 0.
// Uniform numbers come one after the other, in flat order, from the stream "init" of the run seed,
// and those of a normal tensor from that stream keyed by the tensor's place, so every agent that
// knows the seed starts at the same point.
func (n *Network) Init(seed uint64) []float32 {
	x := make([]float32, n.Dim())
	stream := rng.New(seed, "init")
	var all sync.WaitGroup
	defer all.Wait()
	for i, t := range n.layout.tensors {
		part := x[t.Offset : t.Offset+t.Size]
		switch t.start.rule {
		case uniform:
			fillUniform(part, &stream, float32(1/math.Sqrt(float64(t.FanIn))))
		case normal:
			all.Go(func() {
				own := rng.New(seed, "init", uint64(i))
				fillNormal(part, &own, t.start.scale)
			})
		case constant:
			fill(part, float32(t.start.scale))
		}
	}
	return x
}

// InitBuffers returns the buffers of a fresh network: running means 0, running variances 1.
func (n *Network) InitBuffers() []float32 {
	x := make([]float32, n.buffers.dim)
	for _, t := range n.buffers.tensors {
		fill(x[t.Offset:t.Offset+t.Size], float32(t.start.scale))
	}
	return x
}

func fillUniform(x []float32, s *rng.Stream, bound float32) {
	for i := range x {
		x[i] = (2*s.Float32() - 1) * bound // 2u-1 is exact, so this rounds once on every machine
	}
}

func fillNormal(x []float32, s *rng.Stream, deviation float64) {
	for i := range x {
		x[i] = float32(s.Norm() * deviation)
	}
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
