//go:build !noasm && !fspda_noasm

package images

import "golang.org/x/sys/cpu"

// hasAssembly says whether the processor has the instructions. GODEBUG=cpu.asimd=off disables them.
var hasAssembly = cpu.ARM64.HasASIMD

func fromYCbCrAsm(dst, ys, cbs, crs *uint8, groups int) { fromYCbCrNEON(dst, ys, cbs, crs, groups) }

func weighSumAsm(dst *int16, near, far *uint8, groups int) { weighSumNEON(dst, near, far, groups) }

func interpolateAsm(dst *uint8, s *int16, left, right, shift, groups int) {
	interpolateNEON(dst, s, left, right, shift, groups)
}
