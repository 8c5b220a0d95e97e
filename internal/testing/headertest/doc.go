// Package headertest compares tables of Go functions with the C headers of the library that they
// are bound to, for tests. Without a GPU most of the functions cannot be called, so a wrong
// argument would go unnoticed until the first run on one.
//
// It needs a C++ compiler and NVIDIA's headers, which come with the same wheels and toolkits as the
// libraries.
package headertest
