package device

import "math"

// Vector is a flat vector of numbers that belongs to one Device. Only that Device reads its
// contents.
type Vector interface {
	Len() int
}

// Index is a sorted set of distinct coordinates of a vector, stored on its Device. A nil Index
// means all coordinates.
type Index interface {
	Len() int
	// Bound returns a length that all coordinates are below: the largest coordinate plus one, or more.
	Bound() int
}

// Term is one summand A·V of a linear combination.
type Term struct {
	A float64
	V Vector
}

// SparseTerm is a sparse summand: A·V[j] at coordinate Idx[j], for each j.
type SparseTerm struct {
	A   float64
	V   Vector
	Idx Index
}

// Adam holds the coefficients of a step of AdamW: the decay rates of both averages, the weights of
// the newest gradient in them, the factors that correct their bias, the number that is added to the
// root, the weight decay, and the largest mean square; 0: none.
type Adam struct {
	Beta1, Rest1, Beta2, Rest2, Scale1, Scale2, Eps, Decay, Limit float64
}

// Most returns the largest mean square, which may be infinite.
func (a Adam) Most() float64 {
	if a.Limit == 0 {
		return math.Inf(1)
	}
	return a.Limit
}

// Device allocates vectors and computes with them.
type Device interface {
	// Name identifies the device in configurations and messages: "cpu", "cuda:0".
	Name() string

	// NewVector returns a vector of n zeros.
	NewVector(n int) Vector
	// NewIndex copies ascending distinct coordinates to the device. It may reuse the memory of old,
	// which is nil or an Index that is no longer used.
	NewIndex(coordinates []uint32, old Index) Index

	// Write copies src from the host to dst on the device. The lengths are equal.
	Write(dst Vector, src []float32)
	// Read copies src from the device to dst on the host. The lengths are equal.
	Read(dst []float32, src Vector)

	// Do computes the operations one after the other. It panics before the first of them where the
	// lengths of an operation do not fit. It may compute neighbours in one pass over memory, with
	// the same bits, and keeps neither the operations nor their lists.
	Do(ops ...Op)

	// Load prepares code for execution on this device. A Program owns working memory, so each
	// concurrent user loads its own.
	Load(code *Code) (Program, error)
	// Footprint estimates the working memory of a loaded code in bytes: its arena and the workspace
	// of its kernels, without vectors and batches.
	Footprint(code *Code) int

	// Features says what else the device can do.
	Features() Features
	// Err returns the failure after which the device does nothing any more, or nil.
	Err() error
}

// Program is Code loaded on one Device: it computes one network at one batch size. It is not safe
// for concurrent use.
type Program interface {
	// Code returns the code that was loaded.
	Code() *Code
	// Run executes all kernel calls on one batch with the parameters params. It writes the gradient
	// to grad, which is nil for code without gradient, and the results to out, in the order of
	// Code.Results.
	Run(params, grad Vector, b Batch, out []float64) error
	// RunBuffered is Run for code with buffers. Its calls read the buffers or move them by
	// momentum, from 0 to 1. The buffers are up to date when it returns; after an error their
	// contents are undefined. Code without buffers takes nil.
	RunBuffered(params, grad, buffers Vector, momentum float64, b Batch, out []float64) error
	// Start is RunBuffered that need not wait for the end. When it returns, the batch has been taken
	// over: the caller may overwrite it, start more runs, and use the vectors as if the run were
	// over, since the device executes its operations in order. The caller calls wait once: it
	// blocks until out holds the results and returns the error. After an error, which may come from
	// an earlier run, all later results are invalid.
	Start(params, grad, buffers Vector, momentum float64, b Batch, out []float64) (wait func() error)
	// Routes describes the implementations that the device chose for convolutions, in the order of
	// the calls; nil if it has one of each.
	Routes() []string
}
