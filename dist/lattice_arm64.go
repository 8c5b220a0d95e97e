//go:build !noasm && !fspda_noasm

package dist

import "golang.org/x/sys/cpu"

// useLattice selects the assembly. Only tests change it.
var useLattice = cpu.ARM64.HasASIMD

func latticeEncodeAsm(dst, x *float32, n int, inverse float64, mask uint32) (sure bool) {
	return latticeEncodeNEON(dst, x, n, inverse, mask)
}

func latticeDecodeAsm(dst, codes, ref *float32, n int, c *latticeConstants) (far int, largest float64, sure bool) {
	return latticeDecodeNEON(dst, codes, ref, n, &c.inverse)
}
