//go:build !noasm

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

// addsNonTemporal is adds with non-temporal stores.
func addsNonTemporal(dst, a, b []float32) {
	begin, end := wholeLines(dst)
	adds(dst[:begin], a[:begin], b[:begin], false)
	for i := begin; i < end; i += vecBlock {
		if n := min(vecBlock, end-i); isa.Active == isa.AVX512 {
			addStreamAVX512(&dst[i], &a[i], &b[i], n)
		} else {
			addStreamAVX2(&dst[i], &a[i], &b[i], n)
		}
	}
	adds(dst[end:], a[end:], b[end:], false)
}

// relusNonTemporal is ReLUs with non-temporal stores.
func relusNonTemporal(dst, x []float32) {
	begin, end := wholeLines(dst)
	ReLUs(dst[:begin], x[:begin], false)
	for i := begin; i < end; i += vecBlock {
		if n := min(vecBlock, end-i); isa.Active == isa.AVX512 {
			relusStreamAVX512(&dst[i], &x[i], n)
		} else {
			relusStreamAVX2(&dst[i], &x[i], n)
		}
	}
	ReLUs(dst[end:], x[end:], false)
}

// reluGradsNonTemporal is ReLUGrads with non-temporal stores.
func reluGradsNonTemporal(dst, y, dy []float32) {
	begin, end := wholeLines(dst)
	ReLUGrads(dst[:begin], y[:begin], dy[:begin], false)
	for i := begin; i < end; i += vecBlock {
		if n := min(vecBlock, end-i); isa.Active == isa.AVX512 {
			reluGradsStreamAVX512(&dst[i], &y[i], &dy[i], n)
		} else {
			reluGradsStreamAVX2(&dst[i], &y[i], &dy[i], n)
		}
	}
	ReLUGrads(dst[end:], y[end:], dy[end:], false)
}

// sigmoidGradsNonTemporal is SigmoidGrads with non-temporal stores.
func sigmoidGradsNonTemporal(dst, y, dy []float32) {
	begin, end := wholeLines(dst)
	SigmoidGrads(dst[:begin], y[:begin], dy[:begin], false)
	for i := begin; i < end; i += vecBlock {
		if n := min(vecBlock, end-i); isa.Active == isa.AVX512 {
			sigmoidGradsStreamAVX512(&dst[i], &y[i], &dy[i], n)
		} else {
			sigmoidGradsStreamAVX2(&dst[i], &y[i], &dy[i], n)
		}
	}
	SigmoidGrads(dst[end:], y[end:], dy[end:], false)
}
