package train

import "fspda/device"

// Model is all that training needs to know of a network. All methods are safe for concurrent use.
// fspda/model has an implementation.
type Model interface {
	// Dim is d, the length of the flat parameter vector.
	Dim() int
	// Sizes lists the lengths of the tensors that make up the flat vector, in order.
	Sizes() []int
	// Init returns the initial model of a run seed.
	Init(seed uint64) []float32
	// Grad writes the gradient of the mean loss over the batch at x, L2 term included, to dst and
	// returns that loss.
	Grad(dst, x device.Vector, b device.Batch) (loss float64, err error)
	// Score adds up over the batch at x: cross entropy without the L2 term, hits, and hits among
	// the five largest.
	Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error)
}

// Sized is a Model that knows how much memory its programs take, of which there is one for each
// gradient or score that is computed at once.
type Sized interface {
	Model
	// ProgramBytes is the memory of a training gradient of a batch, and that of a score.
	ProgramBytes(batch, scored int) (gradient, score uint64, err error)
}

// Buffered is a Model with local buffers: the running means and variances of batch norm. They
// belong to an agent, never travel and count neither as parameters nor as bits. Grad leaves them
// alone, and Score uses the statistics of its batch.
type Buffered interface {
	Model
	// BufferSizes lists the lengths of the buffers that make up the flat buffer vector, in order:
	// for each layer of batch norm the running means, then the running variances. A network without
	// any returns none.
	BufferSizes() []int
	// InitBuffers returns the buffers of a fresh network: means 0, variances 1.
	InitBuffers() []float32
	// Step is Grad as part of training: it also moves the buffers by the statistics of this batch,
	// as Observe with momentum 0.1 does.
	Step(dst, x, buffers device.Vector, b device.Batch) (loss float64, err error)
	// ScoreWith is Score with the buffers as the statistics of batch norm.
	ScoreWith(x, buffers device.Vector, b device.Batch) (loss, hits, hits5 float64, err error)
	// Observe runs the batch forward at x, as in training, for the buffers alone: each becomes
	// (1-momentum) of itself plus momentum times the mean, or the unbiased variance, of the batch.
	// Momentum 1/k at the k-th batch makes them averages over all.
	Observe(x, buffers device.Vector, b device.Batch, momentum float64) error
}
