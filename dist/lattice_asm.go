//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package dist

// latticeConstants are the constants of decoding: 1/(q·s), 1/q, q, s, and the distance above which
// a point is far. The assembly depends on their order.
type latticeConstants struct{ inverse, share, colours, side, far float64 }

// The assembly multiplies by the inverse where the Go code divides. The two quotients differ by at
// most 1e-6 while they are below 2^30, so they round to the same integer unless they are that close
// to a half. Each function returns false if any number is too close or too large; then the Go code
// runs.

// encodeFast encodes the first numbers of a block and returns their number.
func (l *Lattice) encodeFast(dst, x []float32) int {
	var block [latticeBlock]float32 // dst may be x
	n := len(x) &^ 3
	if n == 0 || !useLattice || !latticeEncodeAsm(&block[0], &x[0], n, 1/l.Side, uint32(l.Colours-1)) {
		return 0
	}
	return copy(dst, block[:n])
}

// decodeFast decodes the first codes of a block.
func (l *Lattice) decodeFast(dst, codes, ref []float32) DecodeStats {
	var block [latticeBlock]float32
	n, q := len(codes)&^3, float64(l.Colours)
	if n == 0 || !useLattice {
		return DecodeStats{}
	}
	_ = ref[n-1]
	c := latticeConstants{1 / (l.Side * q), 1 / q, q, l.Side, l.farFrom()}
	far, largest, sure := latticeDecodeAsm(&block[0], &codes[0], &ref[0], n, &c)
	if !sure {
		return DecodeStats{}
	}
	copy(dst, block[:n])
	return DecodeStats{Total: uint64(n), Far: uint64(far), Largest: largest}
}
