// Package kerneltest holds GPU kernels against Go, on whatever runs them: a GPU, or the host from
// the same source.
//
// [Checks] are for the kernels that devicetest's contract of a device does not reach: masks, which
// must have the bits of fspda/dist, pictures that become numbers, 16-bit numbers and the loss
// scale. A check takes a [Bench] and reports by its testing.TB, as the contract does.
package kerneltest
