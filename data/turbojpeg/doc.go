// Package turbojpeg decodes JPEG files by libjpeg-turbo, if it is installed: its vector code is
// twice as fast as image/jpeg, and it can decode an image at a reduced size.
//
// [Open] loads the library at run time, through its TurboJPEG interface (version 2 or 3), without
// cgo. Programs fall back to image/jpeg if it is missing; the two differ in the last bits of a
// pixel. A program that can load libraries is linked to the system's C library; the build tag
// static removes this, for systems without one.
//
// A [Decoder] belongs to one goroutine at a time. It returns an error for images that it does not
// support, such as CMYK, and for any damage, even recoverable damage, so that the caller can use
// another decoder.
//
// Where to look next: library_unix.go for the calls.
package turbojpeg
