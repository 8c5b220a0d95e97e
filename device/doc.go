// Package device defines where flat vectors are stored and how they are computed with.
//
// An agent is a set of flat vectors: parameters, gradient, dual and momenta are each a [Vector] of
// length d on one [Device]. The algorithms use a few vector operations ([Combine], [Gather],
// [AddDiff], [Dot] and others), which are values of type [Op]. A network is [Code], a
// device-independent list of kernel calls over planned buffers; loading it on a device yields a
// [Program]. So one implementation of an algorithm and one description of a network run on every
// device.
//
// The package holds interfaces and the list of kernels ([Kernel]), but no implementation. fspda/cpu
// computes on the host, fspda/cuda on a GPU. fspda/device/devicetest holds the conformance tests
// that every implementation must pass, and a float64 device for tests of the mathematics.
//
// Conventions. An argument named dst is written; all others are only read. Lengths that do not
// match are a bug of the caller and panic. Errors report external failures: a lost device, a
// malformed batch. Calls may run concurrently unless they share a vector that one of them writes.
// Every operation is deterministic: the same operands give the same bits, regardless of load and
// scheduling.
package device
