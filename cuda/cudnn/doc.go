// Package cudnn is cuDNN as a table of Go functions: convolutions on a GPU, in float32 (or its
// rounding to TF32) and 16 bits, with the channels last.
//
// [Bind] binds the [API] to the library that fspda/cuda/dynlib has found; no GPU is needed for
// that. A [Conv] is a convolution of given shapes, or one of its two gradients, with the way to
// compute it that was the fastest here or, where bits are to repeat, the first that the library
// advises of those whose do: see [Choosing]. What was timed is kept on disk, by [Choices].
//
// There are two kinds of ways. Algorithms are calls for a single operation, which cuDNN has had
// since its beginnings. Engines belong to the graph API, the [Backend]: a graph of descriptors says
// what is to be computed (operation.go), heuristics offer engines with settings and notes of how
// they round (engine.go), and one becomes a plan that is executed with addresses
// (executionplan.go). The fast kernels of newer GPUs are engines only. Where the graph API fails,
// whatever the reason, algorithms do. A caller may bring a third kind, a product of matrices by
// another library.
//
// The library plans for a GPU that is not there if it is told its properties: that is how the tests
// hold all this against the real one. The package fakecudnn below has a graph API in Go.
package cudnn
