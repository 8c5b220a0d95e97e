// Command neongen writes the assembly for arm64 of packages whose kernels for amd64 are written by
// hand: the inverse transform of JPEG (jpeg.go), colours and chroma (rows.go), and the normalization
// and scaling of pixels (normalize.go, resample.go) of package data and of those below it; and the
// cosine transform (dct.go), lattices (lattice.go) and stratified masks (strata.go) of package dist.
//
// Run it by `go generate ./...`; the argument is the folder of the repository.
package main
