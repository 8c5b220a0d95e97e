// Package nvrtc compiles CUDA C++ at run time, by NVIDIA's library of that name, so that the
// program carries the sources of its kernels and needs no toolkit when it is built.
//
// [Open] takes the library that fspda/cuda/dynlib has found; it needs neither a GPU nor a driver.
// [Library.Compile] makes a cubin, the machine code for one generation of GPUs ("sm_90"). A [Cache]
// keeps cubins in a folder, by the content of all that they are made of, so that only the first
// start of a program on a machine compiles.
//
// Where to look next: library.go for the calls; fspda/cuda/kernels for the sources.
package nvrtc
