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
	// StartGrad starts the gradient at x, which it writes to dst, as [evaluate.Model.Grad] does. With
	// buffers it is the training step: it also updates them by the statistics of the batch, as Observe
	// with momentum 0.1 does. It returns as soon as the batch may be overwritten. wait waits for the
	// loss; it must be called exactly once.
	StartGrad(dst, x, buffers device.Vector, b device.Batch) (wait func() (loss float64, err error))
	// Async reports whether StartGrad returns before the gradient is finished. The agent goes on with
	// vectors that the device has still to compute, and reads the losses later. A GPU then never waits
	// for the host, and gradients of several agents can be sent to it together.
	Async() bool
}
