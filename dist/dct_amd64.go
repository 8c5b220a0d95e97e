//go:build !noasm && !fspda_noasm

package dist

import "golang.org/x/sys/cpu"

// useTransform selects the assembly. Only tests change it.
var useTransform = cpu.X86.HasAVX512F

func sumRowsAsm(dst *float32, n int, a *float32, terms int, v *float32, stride int) {
	sumRowsAVX512(dst, n, a, terms, v, stride)
}

// sumRowsAVX512 writes dst[i] = Σ a[k]·v[k·stride+i] for 1 <= n <= 64 numbers and at least one term,
// products and sums rounded one by one.
//
//go:noescape
func sumRowsAVX512(dst *float32, n int, a *float32, terms int, v *float32, stride int)
