// Package kernel defines the kernels of package cpu: functions that take [Args], listed in
// a [Table] by their device.Kernel.
//
// A kernel reads Args.In and writes Args.Out, whose lengths have been checked against the kernel's
// signature. It allocates nothing: memory to work in is Args.Scratch, whose size the table's
// Scratch function tells beforehand. A large kernel calls [Args.Parallel], which computes parts of
// the output on the workers of a [Team]; bits must not depend on the number of parts.
//
// The package also holds tools of all kernels: [Split] and [SplitUnits], which divide work
// evenly; [Aligned] memory; and [ByteMatrix], the examples of a batch as bytes.
package kernel
