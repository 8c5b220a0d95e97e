// Package dynlib finds NVIDIA's shared libraries and opens them at run time, so that one binary
// runs with and without them.
//
// A [Library] describes a library. A [Finder] searches for it, in this order: the folders named by
// the environment, the folder of the program, the site-packages of Python (where the wheels of
// PyTorch put them), CUDA toolkits, and the system's loader. [Finder.Open] returns a [Handle], or
// an [Error] that says which files were tried and how to install the library. [Bind] sets the
// fields of a table of Go functions to a library's functions and reports every missing one.
//
// Some libraries open parts of themselves by file name, and may find the parts of another
// installation or none. Library.LoadBefore and Library.LoadAfter name the files that must be opened
// from the same folder first, before and after the library itself.
//
// Opening libraries requires linking to the system's C library. The build tags nocuda and static
// leave that out: the package then finds nothing.
package dynlib
