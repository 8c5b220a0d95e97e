// Command normgen writes the assembly of package norm, and the Go declarations of its functions.
//
// It writes, for AVX-512 and for AVX2: sums over the rows of a matrix in float64 (sums.go), either
// down some columns at a time (columnpass.go) or in memory order (rows.go); the element-wise passes
// that use them (elementwise.go), in reverse memory order; and max pooling with its gradient
// (pool.go).
//
// Run it by `go generate ./...`; it writes norm_asm_amd64.s and norm_asm_amd64.go to the folder
// that its argument names. A test compares the files in the repository with the generator's output.
// Strides in all signatures count numbers, not bytes.
//
// Start reading at columnpass.go; cpu/norm/loops.go calls the generated functions.
package main
