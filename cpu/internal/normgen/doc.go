// Command normgen writes the assembly of batch normalisation and of pooling in package cpu, and the
// Go declarations that belong to it.
//
// What it writes, for AVX-512 and for AVX2: sums over the rows of a matrix in float64 (sums.go), on
// a walk down some columns at a time (walk.go) or on a march through memory (march.go), the
// element-wise passes that use them (affine.go, gradient.go) on a sweep back through it (sweep.go),
// and the maxima of windows with their gradient (pool.go).
//
// Run it by `go generate ./...`; with no arguments it writes norm_asm_amd64.s and norm_asm_amd64.go
// into the current folder, which must be that of package cpu. A test here holds the files in the
// repository against what the generator says, so they cannot drift apart. Strides in all signatures
// count numbers, not bytes.
//
// Start reading at walk.go; cpu/norm_amd64.go calls what comes out.
package main
