// Command imagegen writes the assembly for arm64 of package data and of those below it that decode
// pictures: the inverse transform of JPEG (jpeg.go), colours and chroma (rows.go), and the
// normalization of pixels (normalize.go). The kernels of amd64 are written by hand.
//
// Run it by `go generate ./...`; the argument is the folder of the repository.
package main
