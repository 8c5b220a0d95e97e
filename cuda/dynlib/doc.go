// Package dynlib finds shared libraries where NVIDIA's are put and opens them at run time, so that
// one binary runs with them and without.
//
// A [Library] says what is looked for; a [Finder] has the places, in this order: folders named by
// the environment, the folder of the program, the site-packages of Python (the wheels that PyTorch
// brings), CUDA toolkits, and whatever the system's loader knows. The result of [Finder.Open] is a
// [Handle], or an [Error] that says what was tried and how to get the library. [Bind] fills a table
// of Go function variables with a library's functions and names every one that is missing.
//
// Some libraries open parts of themselves by name and find those of another installation, or none.
// Library.First and Library.Then name what is to be opened, from the same folder, before and after.
//
// What can open libraries is linked to the system's C library. The build tags nocuda and static
// leave that out: then nothing is ever found.
package dynlib
