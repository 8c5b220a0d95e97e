//go:build !noasm && !fspda_noasm

package data

import "golang.org/x/sys/cpu"

// resampleAssembly enables the assembly. GODEBUG=cpu.asimd=off disables it.
var resampleAssembly = cpu.ARM64.HasASIMD

// wideTable has no groups: registers are too short for it.
type wideTable struct{ groups int }

func (*wideTable) set(*axis) {}

func (*wideTable) sum(_ []uint8, _ []int16) {}

func sumRowsAsm(dst *int16, src *uint8, stride, n int, weight *int16, taps, more int) {
	sumLinesNEON(dst, src, stride, n, weight, taps, more)
}

func sumColumnsAsm(dst *uint8, line *int16, where *uint32, weights *int16, groups, pairs int) {
	sumColumnsNEON(dst, line, where, weights, groups, pairs)
}
