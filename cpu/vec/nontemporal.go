package vec

import (
	"unsafe"

	"fspda/cpu/kernel"
)

// nonTemporalFrom is the length from which a vector is written by non-temporal stores: together
// with its operands it exceeds the caches. Only tests change it.
var nonTemporalFrom = 1 << 22

// nonTemporal reports whether to write d by non-temporal stores: if it is long and none of the
// vectors that are read. An ordinary store reads each cache line before it writes it, a third to a
// fifth of all traffic.
func nonTemporal(d []float32, read ...[]float32) bool {
	if len(d) < nonTemporalFrom {
		return false
	}
	for _, v := range read {
		if &v[0] == &d[0] {
			return false
		}
	}
	return true
}

// wholeLines returns the range of v that consists of whole cache lines. The rest shares its lines
// with other data and is written by ordinary stores.
func wholeLines(v []float32) (begin, end int) {
	begin = min(len(v), int(-uintptr(unsafe.Pointer(pointer(v)))%kernel.CacheLine)/4)
	return begin, begin + (len(v)-begin)/kernel.LineFloats*kernel.LineFloats
}
