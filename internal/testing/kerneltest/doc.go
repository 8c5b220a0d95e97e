// Package kerneltest holds tools that the tests of cpu and of the packages below it share: random
// operands, comparison of bits, and memory that ends at a page that may not be touched.
//
// [Noise] makes operands, [Compare] holds one result against another, bit by bit, and [Fenced]
// finds reads and writes behind the end of an operand.
package kerneltest
