//go:build (!amd64 && !arm64) || noasm || fspda_noasm

package isa

// Available returns the instruction sets of this build: only Go.
func Available() []ISA { return []ISA{Go} }
