//go:build !noasm && !fspda_noasm

package isa

import "golang.org/x/sys/cpu"

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
