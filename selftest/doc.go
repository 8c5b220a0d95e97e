// Package selftest checks that a device computes what it should, on the machine it is on: outside
// of go test, so that one copied program is all that a machine with a GPU needs.
//
// [Target.Checks] lists what is checked: the contract that every device passes
// (fspda/device/devicetest), the kernels that it does not reach (fspda/cuda/kernels/kerneltest),
// masks that it draws by itself against the host's, every way to compute a convolution that a run
// might take, networks against the CPU engine and against finite differences of their own loss, the
// algorithms' golden values (fspda/train/algo/algotest), a short training that must repeat to the
// last bit, and memory that must come back. [Bounds] has how far each precision may be from the
// CPU. [Report] is what came of it.
package selftest
