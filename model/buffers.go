package model

import (
	"gorgonia.org/gorgonia"

	"fspda/device"
)

// normMode says where batch norm takes its statistics from.
type normMode uint8

const (
	fromBatch   normMode = iota // the batch
	fromBuffers                 // the buffers
	moveBuffers                 // the batch, by which the buffers move
)

// bufferMove is a new value for a buffer, which takes the place of the old.
type bufferMove struct {
	buffer int // in the layout of the buffers
	node   *gorgonia.Node
}

// buffer adds the next tensor of the flat buffer vector. Only the graphs that use buffers have a
// leaf for it; else it is nil.
func (b *builder) buffer(name string, initial float32, size int) *gorgonia.Node {
	b.buffers.add(Tensor{Name: name, Shape: []int{size}, Size: size,
		start: start{rule: constant, scale: float64(initial)}})
	if b.norm == fromBatch {
		return nil
	}
	n := b.leaf(name, size)
	b.bufferOf[n] = len(b.buffers.tensors) - 1
	return n
}

// move lets a buffer move towards scale·x by the momentum of the run.
func (b *builder) move(buffer, x *gorgonia.Node, scale float64) {
	n := b.apply(device.MoveAverage, scale, x, buffer, b.momentum())
	b.updates = append(b.updates, bufferMove{b.bufferOf[buffer], n})
}

// momentum is the leaf of the momentum that a run is given.
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
