// Command vecgen writes the assembly of the vector kernels of package cpu, and the Go declarations
// that belong to it.
//
// What it writes, for AVX-512 and for AVX2 alike: the element-wise kernels (elementwise.go),
// combinations of vectors (combine.go), both also with stores past the caches (stream.go), sums of
// differences (differences.go), the exponential and what stands on it (exponential.go), sums and
// maxima (reduce.go), the passes over selected coordinates (sparse.go), and bytes turned into
// numbers where products want them (coded.go). The doc of each function is its meaning; the twin in
// Go of the same name without the instruction set is its definition, to the last bit.
//
// Run it by `go generate ./...`; with no arguments it writes vec_asm_amd64.s and vec_asm_amd64.go
// into the current folder, which must be that of package cpu. A test here holds the files in the
// repository against what the generator says.
//
// Start reading at emitter.go, which has loops, loads and stores for both instruction sets;
// cpu/vec_amd64.go calls what comes out.
package main
