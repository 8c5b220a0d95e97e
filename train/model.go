package train

import "fspda/device"

// Model is all that training needs to know of a network. All methods are safe for concurrent use. fspda/model has an implementation.
type Model interface {
	// Dim is d, the length of the flat parameter vector.
	Dim() int
	// Sizes lists the lengths of the tensors that make up the flat vector, in order.
	Sizes() []int
	// Init returns the initial model of a run seed.
	Init(seed uint64) []float32
	// Grad writes the gradient of the mean loss over the batch at x, L2 term included, to dst and returns that loss.
	Grad(dst, x device.Vector, b device.Batch) (loss float64, err error)
	// Score adds up over the batch at x: cross entropy without the L2 term, hits, and hits among the five largest.
	Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error)
}
