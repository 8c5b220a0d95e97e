// Package isa says which instruction sets the kernels of package cpu may use.
//
// [Available] lists the sets of this processor, fastest first; the last one is always [Go], which
// stands for loops without assembly. The kernels use [Active]. All of them give the same bits.
// GODEBUG=cpu.avx512f=off, cpu.avx2=off and, on arm64, cpu.asimd=off remove an instruction set, and
// the build tags noasm and fspda_noasm remove all but Go (noasm does so in other modules too).
//
// Blocking, packing and division into parts contain no instruction and are the same for all. The
// generators in tools/asm write the assembly, and for each kernel a function whose name ends in
// Asm, which calls the variant of [Active]; fspda/cpu/tile has a table of micro-kernels. A caller
// asks [Assembly] first and uses the loop in Go otherwise. A new instruction set is a row here, its
// detection, and the output of the generators.
package isa
