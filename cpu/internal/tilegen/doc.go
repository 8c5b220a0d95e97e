// Command tilegen writes the assembly of the matrix product of package cpu, and the Go declarations
// that belong to it.
//
// What it writes: for AVX-512 and for AVX2 a micro-kernel for every height and width of a tile of C
// (tile.go), the two ways of packing (transpose.go, spread.go), and a loop of nothing but
// multiply-adds, the yardstick (peak.go).
//
// Run it by `go generate ./...`; with no arguments it writes gemm_asm_amd64.s and gemm_asm_amd64.go
// into the current folder, which must be that of package cpu. A test here holds the files in the
// repository against what the generator says, so they cannot drift apart. A micro-kernel takes a
// struct, tile.Args, whose strides count bytes; the strides in all signatures count numbers.
//
// Start reading at tile.go; cpu/gemm_amd64.go calls what comes out.
package main
