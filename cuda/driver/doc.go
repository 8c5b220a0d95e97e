// Package driver is the CUDA driver API as a table of Go functions.
//
// [Open] finds libcuda, binds [API] to it and initialises it. The methods of API and the functions
// in it return a [Result]; [Result.Err] makes it an error that says what was tried. Handles are
// types of their own, so that a stream is not taken for an event.
//
// CUDA's contexts belong to threads of the operating system: what uses an API is a goroutine that
// is locked to a thread for so long, and has made a context current on it. An API may be used by
// several, but for its hot functions (see [API.ForThread]), which each has for itself.
//
// All functions were found in the libcuda of driver 535.261 (CUDA 12.2), and their arguments are
// those that the cuda.h of CUDA 12.9 and 13 declare: the tests do both again where they find them.
// None has been called on a GPU yet.
//
// With the build tag cu contexts, memory, modules and launches go through gorgonia.org/cu (cu.go),
// which needs cgo, NVIDIA's headers with the folder cuheader before them, and a libcuda to link to.
// Nothing else imports it.
//
// The package fakegpu below has an API on host memory, which keeps an account of everything, for
// tests without a GPU.
package driver
