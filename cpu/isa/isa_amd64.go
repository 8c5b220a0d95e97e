//go:build !noasm && !fspda_noasm

package isa

import (
	"slices"
	"sync"

	"golang.org/x/sys/cpu"
)

// Available returns the instruction sets of this processor, fastest first.
func Available() []ISA {
	x := &cpu.X86
	if !x.HasAVX || !x.HasAVX2 || !x.HasFMA {
		return []ISA{Go}
	}
	if x.HasAVX512 && x.HasAVX512F && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512BW && x.HasBMI2 {
		return []ISA{AVX512, AVX2, Go}
	}
	return []ISA{AVX2, Go}
}

// AMX reports whether the processor multiplies tiles of bfloat16 numbers, and the system lets this
// process use them: Linux does when it is asked, and then saves tiles in signals too.
var AMX = sync.OnceValue(func() bool {
	return BF16() && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && permitTiles()
})

// BF16 reports whether the processor multiplies pairs of bfloat16 numbers (AVX-512 BF16).
func BF16() bool { return cpu.X86.HasAVX512BF16 && slices.Contains(Available(), AVX512) }
