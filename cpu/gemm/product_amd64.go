//go:build !noasm && !fspda_noasm

package gemm

import (
	"fspda/cpu/tile"
)

// product is call.run without its checks.
func product(m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View, then epilogue) {
	s := tile.Active()
	if s == nil {
		plainProduct(m, n, k, alpha, a, b, beta, c, then)
		return
	}
	packedProduct(s, m, n, k, alpha, a, b, beta, c, then)
}
