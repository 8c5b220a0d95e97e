// Command vecgen writes the assembly of package vec, and the Go declarations of its functions.
//
// It writes, for AVX-512 and for AVX2: the element-wise kernels (elementwise.go) and combinations
// of vectors (combine.go), both also with non-temporal stores (stream.go), sums of differences
// (differences.go), the exponential and its users (exponential.go), sums and maxima (reduce.go),
// loops over selected coordinates (sparse.go), and the decoding of bytes for matrix products
// (decode.go). The doc of each generated function says what it computes; the Go function of the
// same name, with the suffix Go instead of the instruction set, is its definition to the last bit.
//
// Run it by `go generate ./...`; it writes vec_asm_amd64.s and vec_asm_amd64.go to the folder that
// its argument names. A test compares the files in the repository with the generator's output.
//
// Start reading at emitter.go, which has loops, loads and stores for both instruction sets;
// cpu/vec/loops.go calls the generated functions.
package main
