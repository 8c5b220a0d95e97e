// Package arm64 writes functions for arm64: instructions with virtual registers, which it assigns
// to the registers of the processor, and prints in the syntax of Go's assembler.
//
// Go's assembler knows few vector instructions with floating-point numbers. Each instruction that
// works on vectors is therefore printed as a word, with its name in a comment; a test disassembles
// all of them (ops.go has the encodings).
//
// [Translate] makes a function for arm64 from one that was written for AVX2: each register of eight
// numbers becomes two of four, so that all sums have the same order, and thus the same bits. A
// register that holds one number in all places becomes one. What is masked with AVX2 is read and
// written number by number. So a kernel is written once for both; only the micro-kernels of products
// are written for arm64 alone, on the functions of a [Func] directly.
package arm64
