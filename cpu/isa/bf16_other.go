//go:build !amd64 || noasm || fspda_noasm

package isa

// BF16 reports whether there is assembly for pairs of bfloat16 numbers: only on amd64.
func BF16() bool { return false }
