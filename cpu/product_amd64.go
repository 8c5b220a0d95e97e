//go:build !noasm

package cpu

// product is gemmThen without its checks.
func product(m, n, k int, alpha float32, a, b view, beta float32, c view, then epilogue) {
	s := activeSet()
	if s == nil {
		productPlain(m, n, k, alpha, a, b, beta, c, then)
		return
	}
	productOn(s, m, n, k, alpha, a, b, beta, c, then)
}
