// Package kerneltest compares GPU kernels with Go code, on a GPU or on the host.
//
// [Checks] covers the kernels that the device contract of package devicetest does not reach: masks,
// which must have the bits of fspda/dist, conversion of images to numbers, 16-bit numbers, the loss
// scale, and the megakernel. A check runs on a [Runner] and reports to a testing.TB, as the
// contract does.
package kerneltest
