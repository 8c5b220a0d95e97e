//go:build !noasm && !fspda_noasm

package jpeg

import "golang.org/x/sys/cpu"

// inverse transforms pairs of adjacent blocks. GODEBUG=cpu.avx2=off disables the assembly.
func inverse(dst []uint8, stride int, blocks []int16, quant *[64]int16, pairs int) {
	if !cpu.X86.HasAVX2 {
		inverseGo(dst, stride, blocks, quant, pairs)
		return
	}
	_, _ = dst[7*stride+16*pairs-1], blocks[128*pairs-1]
	for n := 0; n < pairs; n += pairsPerCall {
		inverseAVX2(&dst[16*n], stride, &blocks[128*n], quant, min(pairsPerCall, pairs-n))
	}
}

// pairsPerCall is some 2 µs of work, since the scheduler cannot preempt assembly.
const pairsPerCall = 64

// inverseAVX2 is inverseGo.
//
//go:noescape
func inverseAVX2(dst *uint8, stride int, blocks *int16, quant *[64]int16, pairs int)
