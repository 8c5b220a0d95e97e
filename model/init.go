package model

import (
	"math"
	"sync"

	"fspda/internal/rng"
)

// start describes the initial values of a tensor.
type start struct {
	rule  rule
	scale float64
}

// rule is a distribution of initial values.
type rule uint8

const (
	uniform  rule = iota // uniform in ±1/√fan-in
	normal               // normal with mean 0 and standard deviation scale
	constant             // the constant scale
)

// fanOutScale returns the standard deviation of He initialization by fan-out, which preserves the
// variance of gradients: variance 2/(side²·outputs).
func fanOutScale(fanOut int) float64 { return math.Sqrt(2 / float64(fanOut)) }

// Init returns a new parameter vector of length Dim. Weights and biases of a dense layer are
// uniform in ±1/√fan-in. In a residual network a filter is normal with variance 2/(side²·outputs),
// the last layer's weight normal with standard deviation 0.01, and batch norm has scale 1 and shift
// 0. Uniform numbers are drawn in flat order from the stream "init" of the run seed, normal
// numbers from that stream keyed by the tensor's index. So every agent that knows the seed
// starts at the same point.
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
				for k := range part {
					part[k] = float32(own.Norm() * t.start.scale)
				}
			})
		case constant:
			fill(part, float32(t.start.scale))
		}
	}
	return x
}

// InitBuffers returns initial buffers: running means 0, running variances 1.
func (n *Network) InitBuffers() []float32 {
	x := make([]float32, n.buffers.dim)
	for _, t := range n.buffers.tensors {
		fill(x[t.Offset:t.Offset+t.Size], float32(t.start.scale))
	}
	return x
}

func fillUniform(x []float32, s *rng.Stream, bound float32) {
	for i := range x {
		// 2u-1 is exact, so only the product is rounded, on every machine
		x[i] = (2*s.Float32() - 1) * bound
	}
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
