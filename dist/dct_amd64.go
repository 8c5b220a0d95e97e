//go:build !noasm && !fspda_noasm

package dist

import "golang.org/x/sys/cpu"

// useTransformAVX512 selects the AVX-512 implementation. Only tests change it.
var useTransformAVX512 = cpu.X86.HasAVX512F

// sumRowsAVX512 writes dst[i] = Σ a[k]·v[k·stride+i] for 1 <= n <= 64 numbers and at least one term,
// products and sums rounded one by one.
//
//go:noescape
func sumRowsAVX512(dst *float32, n int, a *float32, terms int, v *float32, stride int)

// sumRowsFast is sumRows for 1 to maxSide numbers; false: it did nothing.
func sumRowsFast(dst, a, v []float32, stride int) bool {
	if !useTransformAVX512 || len(a) == 0 {
		return false
	}
	_ = v[(len(a)-1)*stride+len(dst)-1]
	sumRowsAVX512(&dst[0], len(dst), &a[0], len(a), &v[0], stride)
	return true
}
