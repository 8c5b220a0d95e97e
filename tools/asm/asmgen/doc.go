// Package asmgen prints and writes what the generators of package cpu emit: an assembly file and
// the Go declarations of its functions.
//
// A generator's main calls [Main] with a function that emits into an avo build context. Its tests
// compare the files in the repository with [File.Print], and inspect the instructions by
// [Functions].
package asmgen
