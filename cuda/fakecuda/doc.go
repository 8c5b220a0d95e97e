// Package fakecuda stands in for NVIDIA's libraries, for tests of the whole program on a machine
// without a GPU.
//
// [Build] makes libcuda.so.1, libnvrtc.so.13, libcublas.so.13, libcublasLt.so.13 and libcudnn.so.9,
// of the C++ in src, in a folder that FSPDA_CUDA_PATH may name: the program finds, opens and calls
// them as it does the real ones, through every pointer and structure of their binary interface.
// They do the work on the host: kernels run from their own source (fspda/cuda/kernels/hostrun),
// memory is host memory, products and convolutions are loops.
//
// They are meaner than a GPU. Work is done when somebody waits for it, streams overtake each other
// as a seed has it, new memory holds NaN, memory that was given back cannot be read, and what lies
// behind an allocation cannot be touched. A [Machine] says what GPUs there are, which calls fail
// and how; a [Report] tells of all that a caller should not have done, though a GPU might have let
// it pass, and of what was not given back.
//
// Where NVIDIA's headers are found, a test compiles the same sources against them, so that every
// function has the declaration that it has there.
//
// fspda/cuda/driver/fakegpu is the same idea one floor higher, behind the table of Go functions:
// it needs no compiler.
package fakecuda
