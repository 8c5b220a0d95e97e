//go:build !noasm && !fspda_noasm

package isa

import "golang.org/x/sys/cpu"

// Available returns the instruction sets of this processor, fastest first.
func Available() []ISA {
	if !cpu.ARM64.HasASIMD {
		return []ISA{Go}
	}
	return []ISA{NEON, Go}
}
