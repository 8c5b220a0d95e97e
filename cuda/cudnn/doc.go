// Package cudnn binds cuDNN to tables of Go functions: convolutions on a GPU, in float32 (or its
// rounding to TF32) and 16 bits, with the channels last.
//
// [Bind] binds [API] to the library that fspda/cuda/dynlib has found; that needs no GPU. A [Conv]
// is a convolution of given shapes, or one of its two gradients, with a chosen implementation: the
// fastest one measured on this GPU or, in deterministic runs, the first deterministic one that the
// library recommends (see [Selection]). Measured choices are stored on disk by a [ChoiceCache].
//
// There are two kinds of implementations. Algorithms are calls for a single operation, from cuDNN's
// legacy API. Engines belong to the graph API, [Backend]: a graph of descriptors describes the
// computation (operation.go), heuristics offer engines with settings and with notes on how they
// round (engine.go), and an engine becomes a plan that is executed with addresses
// (executionplan.go). The fast kernels of newer GPUs exist as engines only. If the graph API fails
// for any reason, algorithms are used. The caller may add a third kind, a matrix product by another
// library.
//
// Given the properties of a GPU, the library makes plans without one; the tests use that to check
// this package against the real library. Package fspda/internal/testing/fakecudnn
// implements a graph API in Go.
package cudnn
