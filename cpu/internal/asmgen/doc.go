// Package asmgen prints and writes what the generators of package cpu emit: a file of assembly and
// the Go declarations that belong to it, both in the folder of package cpu.
//
// A generator's main is a call of [Main] with a function that emits into a build context. Its tests
// hold the files in the repository against [File.Print], and look into them by [Functions].
package asmgen
