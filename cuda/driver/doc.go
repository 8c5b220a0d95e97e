// Package driver binds the CUDA driver API to a table of Go functions.
//
// [Open] finds libcuda, binds [API] to it and initialises it. The functions of API return a
// [Result]; [API.Check] turns it into an [Error] that describes the attempt. Each kind of handle is
// a type of its own, so that the compiler rejects a stream in place of an event.
//
// A CUDA context is current on a thread of the operating system: a goroutine that calls an API must
// be locked to its thread and must have made a context current on it. Several goroutines may share
// an API, except for its hot functions: each goroutine needs its own (see [Library.ForThread]).
//
// The functions were found in the libcuda of driver 535.261 (CUDA 12.2), and their arguments match
// the cuda.h of CUDA 12.9 and 13; tests repeat both checks where the files are installed. They have
// run on an H200 with driver 580.159.04 (CUDA 13.0).
//
// With the build tag cu, contexts, memory, modules and launches are routed through gorgonia.org/cu
// (cu.go). That needs cgo, NVIDIA's headers with the folder cuheader before them in the include
// path, and a libcuda to link to. No other file imports gorgonia.org/cu.
//
// Package fspda/internal/testing/fakegpu implements an API in host memory, for tests without a GPU.
package driver
