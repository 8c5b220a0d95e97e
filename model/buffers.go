package model

import (
	"gorgonia.org/gorgonia"

	"fspda/device"
)

// normMode selects the statistics of batch norm.
type normMode uint8

const (
	fromBatch   normMode = iota // use the statistics of the batch
	fromBuffers                 // use the buffers
	moveBuffers                 // use the statistics of the batch, which also update the buffers
)

// bufferMove is the new value of a buffer.
type bufferMove struct {
	buffer int // index in the layout of the buffers
	node   *gorgonia.Node
}

// buffer adds the next tensor of the flat buffer vector. It returns nil in graphs that use no
// buffers.
func (b *builder) buffer(name string, initial float32, size int) *gorgonia.Node {
	b.buffers.add(Tensor{Name: name, Shape: []int{size}, Size: size,
		start: start{rule: constant, scale: float64(initial)}})
	if b.kind.norm() == fromBatch {
		return nil
	}
	n := b.leaf(name, size)
	b.bufferOf[n] = len(b.buffers.tensors) - 1
	return n
}

// move updates a buffer towards scale·x by the momentum of the run.
func (b *builder) move(buffer, x *gorgonia.Node, scale float64) {
	n := b.apply(device.MoveAverage, scale, x, buffer, b.momentum())
	b.updates = append(b.updates, bufferMove{b.bufferOf[buffer], n})
}

// momentum returns the leaf of the momentum argument of a run.
func (b *builder) momentum() *gorgonia.Node {
	for n, space := range b.data {
		if space == device.Momentum {
			return n
		}
	}
	layer := b.layer
	defer func() { b.layer = layer }()
	return b.input(device.Momentum, 1)
}
