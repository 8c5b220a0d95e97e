// Package signature declares the operands of every device.Kernel and validates Code before a device
// loads it. Errors name the call and the operand that has the wrong length, is outside its space,
// or overlaps another operand that its kernel does not allow it to overlap.
package signature
