// Package isa says which instruction sets the kernels of package cpu may use.
//
// [Available] lists those of this processor, fastest first; the last one is always [Go], which
// stands for loops without assembly. The kernels use [Active]. All of them give the same bits.
// GODEBUG=cpu.avx512f=off and cpu.avx2=off remove an instruction set, and the build tags noasm
// and fspda_noasm remove all but Go (noasm does so in other modules too).
//
// A package that holds assembly looks up its functions by ISA; see fspda/cpu/tile for an example.
package isa
