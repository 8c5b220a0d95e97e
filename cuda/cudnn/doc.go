// Package cudnn is cuDNN as a table of Go functions: convolutions on a GPU, in float32 (or its rounding to TF32) and 16 bits, with the channels
// last.
//
// [Bind] binds the [API] to the library that fspda/cuda/dynlib has found; no GPU is needed for that. A [Conv] is a convolution of given shapes and its two
// gradients, with the algorithm that was the fastest here or, where bits are to repeat, the first that the library advises of those whose do:
// see [Choosing]. What was timed is kept on disk, by [Choices]. It uses the calls for single operations, which cuDNN
// has had since its beginnings, since they are the same on all generations of GPUs.
package cudnn
