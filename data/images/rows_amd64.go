//go:build !noasm && !fspda_noasm

package images

import "golang.org/x/sys/cpu"

// hasAssembly says whether the processor has the instructions. GODEBUG=cpu.avx2=off disables them.
var hasAssembly = cpu.X86.HasAVX2

func fromYCbCrAsm(dst, ys, cbs, crs *uint8, groups int) { fromYCbCrAVX2(dst, ys, cbs, crs, groups) }

func weighSumAsm(dst *int16, near, far *uint8, groups int) { weighSumAVX2(dst, near, far, groups) }

func interpolateAsm(dst *uint8, s *int16, left, right, shift, groups int) {
	interpolateAVX2(dst, s, left, right, shift, groups)
}

// fromYCbCrAVX2 is fromYCbCrGo for groups of 16 pixels.
//
//go:noescape
func fromYCbCrAVX2(dst, ys, cbs, crs *uint8, groups int)

// weighSumAVX2 is weighSumGo for groups of 16 samples.
//
//go:noescape
func weighSumAVX2(dst *int16, near, far *uint8, groups int)

// interpolateAVX2 is interpolateGo for groups of 16 sums, from s[1] on.
//
//go:noescape
func interpolateAVX2(dst *uint8, s *int16, left, right, shift, groups int)
