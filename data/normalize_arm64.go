//go:build !noasm && !fspda_noasm

package data

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// normalizeCodes lists the implementations that this processor supports, fastest first.
// GODEBUG=cpu.asimd=off disables the assembly.
func normalizeCodes() []normalizeCode {
	table := normalizeCode{"go", func(dst *float32, pixels *uint8, n int, scale, shift float32, _ *uint8) {
		out, in := unsafe.Slice(dst, n), unsafe.Slice(pixels, n)
		for i, p := range in {
			out[i] = float32(scale*float32(p)) + shift
		}
	}, nil}
	if !cpu.ARM64.HasASIMD {
		return []normalizeCode{table}
	}
	return []normalizeCode{{"neon", normalizeNEON,
		func(dst *float32, pixels *uint8, n int, p *pattern) { patternNEON(dst, pixels, n, &p.scale[0]) }}, table}
}
