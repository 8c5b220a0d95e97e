package train

import (
	"fspda/device"
	"fspda/train/evaluate"
)

// Model is the interface that training needs of a network. All methods are safe for concurrent use.
// The package fspda/model implements it.
type Model interface {
	evaluate.Model
	// Dim returns d, the length of the flat parameter vector.
	Dim() int
	// Sizes lists the lengths of the tensors of the flat vector, in order.
	Sizes() []int
}

// Buffered is a Model with buffers: the running means and variances of batch norm. They belong to
// an agent, are never sent, and count neither as parameters nor as bits. Grad does not change them,
// and Score uses the statistics of its batch.
type Buffered interface {
	Model
	evaluate.Buffered
	// BufferSizes lists the lengths of the parts of the flat buffer vector, in order: for each
	// layer of batch norm the running means, then the running variances. It is empty without batch
	// norm.
	BufferSizes() []int
	// Step is Grad as part of training: it also updates the buffers by the statistics of the batch,
	// as Observe with momentum 0.1 does.
	Step(dst, x, buffers device.Vector, b device.Batch) (loss float64, err error)
}
