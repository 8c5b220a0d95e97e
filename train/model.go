package train

import (
	"fspda/device"
	"fspda/model"
	"fspda/train/evaluate"
)

// Model is the interface that training needs of a network. All methods are safe for concurrent use.
// The package fspda/model implements it.
type Model interface {
	evaluate.Model
	// Dim returns d, the length of the flat parameter vector.
	Dim() int
	// Describe returns the facts about the model that training needs: the tensors of the flat vector,
	// its buffers, and the memory of its programs.
	Describe() model.Description
}

// Buffered is a Model with buffers: the running means and variances of batch norm. They belong to
// an agent, are never sent, and count neither as parameters nor as bits. Grad does not change them,
// and Score uses the statistics of its batch.
type Buffered interface {
	Model
	evaluate.Buffered
	// Step is Grad as part of training: it also updates the buffers by the statistics of the batch,
	// as Observe with momentum 0.1 does.
	Step(dst, x, buffers device.Vector, b device.Batch) (loss float64, err error)
}
