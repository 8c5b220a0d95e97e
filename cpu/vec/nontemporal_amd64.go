//go:build !noasm && !fspda_noasm

package vec

import (
	"unsafe"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
)

// wholeLines returns the range of v that consists of whole cache lines. The rest shares its lines
// with other data and is written by ordinary stores.
func wholeLines(v []float32) (begin, end int) {
	begin = min(len(v), int(-uintptr(unsafe.Pointer(pointer(v)))%kernel.CacheLine)/4)
	return begin, begin + (len(v)-begin)/kernel.LineFloats*kernel.LineFloats
}

func combineNonTemporal(dst []float32, v *[maxTerms]*float32, c *combination, begin, end int) {
	for i := begin; i < end; i += vecBlock {
		if to := min(i+vecBlock, end); isa.Active == isa.AVX512 {
			combineStreamAVX512(pointer(dst), &v[0], &c.a[0], c.terms, i, to)
		} else {
			combineStreamAVX2(pointer(dst), &v[0], &c.a[0], c.terms, i, to)
		}
	}
}
