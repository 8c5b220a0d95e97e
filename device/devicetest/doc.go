// Package devicetest holds what a device is tested with.
//
// [Contract] is what every device.Device must pass: call it from a test of the package that
// implements one. It holds the vector operations to the last bit, since device.Device says how each
// product and each sum is rounded, and every kernel to stated error bounds around [Interpret],
// which evaluates a kernel call in float64 by the definition and nothing else.
//
// [NewFloat64] is a device that computes in float64, the oracle for algorithms: on it, a test of
// the mathematics has errors of 1e-15 and not of 1e-7. Its vectors are [*Vector64]. It loads no
// networks.
//
// Everything here prefers the obvious to the fast. A new kernel needs an entry in Interpret, in the
// table of shapes (shapes.go) and in the table of bounds (bounds.go); Contract then covers it. Test
// data come from internal/rng, so a failure repeats.
package devicetest
