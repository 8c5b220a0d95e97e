// Package selftest checks that a device computes correct results on the machine that it runs on. It
// does not need go test, so that a copy of the program is enough on a machine with a GPU.
//
// [Target.Checks] returns the checks: the contract of every device (fspda/device/devicetest); the
// kernels that it does not reach (fspda/cuda/kernels/kerneltest); masks drawn on the device,
// compared with the host's; every implementation of a convolution that a run might choose, and
// every kernel that computes several calls; networks, compared with the CPU engine and with finite
// differences of their loss; the golden values of the algorithms (fspda/train/algo/algotest); a
// short training, which must be reproducible bit by bit; and memory, which must be freed. [Bounds]
// holds the tolerances of each precision. [Report] holds the results.
package selftest
