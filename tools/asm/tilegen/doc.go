// Command tilegen writes the assembly of package tile, and the Go declarations of its functions.
//
// It writes, for AVX-512 and for AVX2, a micro-kernel for every height and width of a tile of C
// (tile.go), the functions for packing (transpose.go, copy.go), and a loop of multiply-adds that
// measures the peak of a core (peak.go).
//
// Run it by `go generate ./...`; it writes tile_asm_amd64.s and tile_asm_amd64.go to the folder
// that its argument names. A test compares the files in the repository with the generator's output.
// A micro-kernel takes a struct, tile.Args, whose strides count bytes; the strides in all
// signatures count numbers.
//
// Start reading at tile.go; cpu/tile/sets_amd64.go lists the generated functions.
package main
