//go:build !noasm && !fspda_noasm

package dist

import "golang.org/x/sys/cpu"

// useLattice selects the assembly. Only tests change it.
var useLattice = cpu.X86.HasAVX2

func latticeEncodeAsm(dst, x *float32, n int, inverse float64, mask uint32) (sure bool) {
	return latticeEncodeAVX2(dst, x, n, inverse, mask)
}

func latticeDecodeAsm(dst, codes, ref *float32, n int, c *latticeConstants) (far int, largest float64, sure bool) {
	return latticeDecodeAVX2(dst, codes, ref, n, c)
}

//go:noescape
func latticeEncodeAVX2(dst, x *float32, n int, inverse float64, mask uint32) (sure bool)

//go:noescape
func latticeDecodeAVX2(dst, codes, ref *float32, n int, c *latticeConstants) (far int, largest float64, sure bool)
