//go:build !noasm && !fspda_noasm

package data

import "golang.org/x/sys/cpu"

// normalizeCodes lists the implementations that this processor supports, fastest first. SSE2, which
// every amd64 has, is three times faster than the table. GODEBUG=cpu.avx512f=off and cpu.avx2=off
// disable implementations.
func normalizeCodes() []normalizeCode {
	codes := []normalizeCode{{"sse2", normalizeSSE2, nil}}
	if cpu.X86.HasAVX2 {
		codes = append([]normalizeCode{{"avx2", normalizeAVX2, patternAVX2}}, codes...)
		if cpu.X86.HasAVX512F {
			codes = append([]normalizeCode{{"avx512", normalizeAVX512, patternAVX512}}, codes...)
		}
	}
	return codes
}

//go:noescape
func normalizeSSE2(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)

//go:noescape
func normalizeAVX2(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)

//go:noescape
func normalizeAVX512(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)

//go:noescape
func patternAVX2(dst *float32, pixels *uint8, n int, p *pattern)

//go:noescape
func patternAVX512(dst *float32, pixels *uint8, n int, p *pattern)
