//go:build !noasm && !fspda_noasm

package data

import "golang.org/x/sys/cpu"

// resampleAssembly enables the assembly. GODEBUG=cpu.avx2=off disables it.
var resampleAssembly = cpu.X86.HasAVX2

func sumRowsAsm(dst *int16, src *uint8, stride, n int, weight *int16, taps, more int) {
	sumRowsAVX2(dst, src, stride, n, weight, taps, more)
}

func sumColumnsAsm(dst *uint8, line *int16, where *uint32, weights *int16, groups, pairs int) {
	sumColumnsAVX2(dst, line, where, weights, groups, pairs)
}

// sumRowsAVX2 is sumRowsGo for n numbers, a positive multiple of 32, and 1 to 4 weights. Where more
// is not 0 it adds to dst.
//
//go:noescape
func sumRowsAVX2(dst *int16, src *uint8, stride, n int, weight *int16, taps, more int)

// sumColumnsAVX2 writes 12 bytes a group, and 2 behind the last.
//
//go:noescape
func sumColumnsAVX2(dst *uint8, line *int16, where *uint32, weights *int16, groups, pairs int)
