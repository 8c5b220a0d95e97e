// Package headertest holds tables of Go functions against the headers of the library that they are
// bound to, for tests: without a GPU hardly any of the functions can be called, and a wrong
// argument would show on the first one only.
//
// It needs a C++ compiler and NVIDIA's headers, which come with the wheels and toolkits that have
// the libraries.
package headertest
