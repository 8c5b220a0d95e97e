// Package nvrtc compiles CUDA C++ at run time with NVIDIA's NVRTC library, so that the program
// carries the sources of its kernels and needs no CUDA toolkit to be built.
//
// [Open] takes the library that fspda/cuda/dynlib has found; it needs neither a GPU nor a driver.
// [Library.Compile] compiles a source to a cubin, the machine code for one architecture ("sm_90").
// A [Cache] stores cubins in a folder under a digest of all their inputs, so that only the first
// start of a program on a machine compiles.
//
// Where to look next: library.go for the calls; fspda/cuda/kernels for the sources.
package nvrtc
