// Package devicetest holds the conformance tests of devices and a reference device.
//
// [Contract] is the suite that every device.Device must pass: call it from a test of the
// implementing package. It compares vector operations to the last bit, since device.Device
// specifies every rounding, and kernels within stated error bounds of [Interpret], which evaluates
// a kernel call in float64 by its definition.
//
// [NewFloat64] returns a device that computes in float64, the reference for algorithms: on it,
// tests of the mathematics have errors of 1e-15 instead of 1e-7. Its vectors are [*Vector64]. It
// loads no networks.
//
// This package prefers clarity to speed. A new kernel needs an entry in Interpret, in the table of
// shapes (shapes.go) and in the table of bounds (bounds.go); Contract then covers it. Test data
// come from internal/rng, so failures are reproducible.
package devicetest
