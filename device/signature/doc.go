// Package signature knows what operands every device.Kernel takes, and checks Code before a device
// loads it: an error names the call, and the operand that is of the wrong length, outside its
// space, or overlaps another one in a way that its kernel does not allow.
package signature
