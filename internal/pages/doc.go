// Package pages asks the system for memory in large pages.
//
// A processor keeps the addresses of some thousand pages at hand. Where more small ones than that
// are visited in no order, as the examples of a batch are, each visit has to look up its page
// first; pages of 2 MB take that away. [Large] asks for them; how it is answered changes speed and
// never a number.
//
// [Zeros] does so for memory that may have been in use before. The caller's duty is to ask before
// anything is written to the memory. Where to look next: large_linux.go.
package pages
