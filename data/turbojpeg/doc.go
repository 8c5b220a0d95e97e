// Package turbojpeg decodes JPEG files by libjpeg-turbo, where the machine has it: its vector code
// takes half the time of image/jpeg, and a picture that is to shrink can be decoded at a fraction
// of its size.
//
// The library is opened at run time by [Open], through its TurboJPEG interface (version 2 or 3),
// without cgo. A program that finds none goes on with image/jpeg; the two differ in the last bits
// of a pixel. Whatever can open libraries is linked to the system's C library; the build tag static
// leaves that out, for systems without one.
//
// A [Decoder] belongs to one goroutine at a time. What it cannot or would rather not decode - CMYK,
// damage, even of the kind that can be guessed around - is an error, for another decoder to judge.
//
// Where to look next: library_unix.go for the calls.
package turbojpeg
