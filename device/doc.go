// Package device says where flat vectors live and who computes with them.
//
// An agent is a flat vector: parameters, gradient, dual and momenta are each a [Vector] of length d
// on one [Device], and the algorithms move such vectors with four operations ([Device.Combine],
// [Device.Gather], [Device.AddDiff], [Device.Dot]). A network arrives as [Code], a list of kernel
// calls over planned buffers that knows no device, and becomes a [Program] when a device loads it.
// So one text of an algorithm and one description of a network run on every device.
//
// The package holds interfaces and the vocabulary of kernels ([Kernel]) and no implementation.
// fspda/cpu computes on the host; fspda/device/devicetest holds the contract that every
// implementation must pass, and a float64 device for tests of the mathematics.
//
// Conventions. What is named dst is written; all else is only read. Lengths that do not fit are a
// bug of the caller and panic; errors are for the world (a device that is lost, a batch that is
// malformed). Two calls on different vectors may run at the same time; two calls that share a
// written vector may not. Every operation is deterministic: the same operands give the same bits,
// whatever else the machine does.
package device
