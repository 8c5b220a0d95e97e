//go:build !noasm && !fspda_noasm

package dist

import "golang.org/x/sys/cpu"

// useTransform selects the assembly. Only tests change it.
var useTransform = cpu.ARM64.HasASIMD

func sumRowsAsm(dst *float32, n int, a *float32, terms int, v *float32, stride int) {
	sumRowsNEON(dst, n, a, terms, v, stride)
}
