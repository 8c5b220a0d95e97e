// Package tile holds the micro-kernels of matrix products and convolutions, and the packing of
// their operands.
//
// A micro-kernel ([Func]) computes a tile of C = alpha·A·B + beta·C: all products of a few rows and
// of one or two vectors of columns, while the sums stay in registers. [Active] returns the
// micro-kernels of the instruction set in use, or nil where products are in Go; [Plain] is their
// definition in Go. Strides in [Args] count bytes, and the assembly does not check bounds: the
// caller must.
//
// A [View] is a matrix in memory. [PackTransposed] and [PackCopy] copy a part of one to where a
// micro-kernel reads it contiguously.
//
// A number of A and B may be a pair of bfloat16 numbers ([Kind], pairs.go), for which there are
// other micro-kernels.
//
// Sums are cut into chunks of at most [Depth] products, [Chunks] of them. This is part of the
// definition of every product: see fspda/cpu/gemm, which builds matrix products on this package,
// and fspda/cpu/conv, which builds convolutions. The command in tools/asm/tilegen writes the
// assembly.
package tile
