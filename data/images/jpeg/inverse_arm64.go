//go:build !noasm && !fspda_noasm

package jpeg

import "golang.org/x/sys/cpu"

// inverse transforms pairs of adjacent blocks. GODEBUG=cpu.asimd=off disables the assembly.
func inverse(dst []uint8, stride int, blocks []int16, quant *[64]int16, pairs int) {
	if !cpu.ARM64.HasASIMD {
		inverseGo(dst, stride, blocks, quant, pairs)
		return
	}
	_, _ = dst[7*stride+16*pairs-1], blocks[128*pairs-1]
	for n := 0; n < pairs; n += pairsPerCall {
		inverseNEON(&dst[16*n], stride, &blocks[128*n], quant, min(pairsPerCall, pairs-n))
	}
}

// pairsPerCall is some 2 µs of work, since the scheduler cannot preempt assembly.
const pairsPerCall = 64
