// Package fakecuda builds fakes of NVIDIA's shared libraries, for tests of the whole program on a
// machine without a GPU.
//
// [Build] compiles libcuda.so.1, libnvrtc.so.13, libcublas.so.13, libcublasLt.so.13 and
// libcudnn.so.9 from the C++ in src to a folder that FSPDA_CUDA_PATH can name. The program finds,
// opens and calls them like the real libraries, through every pointer and structure of their binary
// interface. They compute on the host: kernels are compiled from their own source
// (fspda/internal/testing/hostrun), device memory is host memory, products and convolutions are
// loops.
//
// The fakes are stricter than a GPU. Work runs only when something waits for it, streams overtake
// each other in an order given by a seed, new memory holds NaN, freed memory cannot be read, and
// memory beyond an allocation cannot be accessed. A [Machine] describes the GPUs and says which
// calls fail. A [Report] lists every misuse, even where a GPU might tolerate it, and everything
// that was not freed.
//
// If NVIDIA's headers are installed, a test compiles the same sources against them, which checks
// the declaration of every function.
//
// Package fspda/internal/testing/fakegpu fakes a GPU one level higher, behind the table of Go
// functions, and needs no compiler.
package fakecuda
