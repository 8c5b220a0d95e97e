// Package sharedmem allocates memory that other processes can map.
//
// A [File] has no name: another process gets it over a Unix socket, and the system frees it with
// the last process that has it open, also after a kill. [File.Floats] returns numbers in it, which
// the garbage collector frees like any others: they are pages of an ordinary allocation, replaced
// by pages of the file. The package works on Linux and macOS. Where to look next: file_unix.go.
package sharedmem

// Region is a range of bytes of a File.
type Region struct{ Offset, Bytes int64 }
