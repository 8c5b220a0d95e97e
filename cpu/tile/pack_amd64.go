//go:build !noasm && !fspda_noasm

package tile

// PackTransposed writes rows×depth elements of src, whose rows are contiguous, transposed:
// dst[p·ds+r] = src[r][p]. From row `rows` to the next multiple of eight it leaves undefined
// values.
func PackTransposed(dst []float32, ds int, src View, rows, depth int) {
	const side = 8 // of the square that transpose8AVX2 transposes
	whole := depth / side * side
	for r := 0; r < rows; r += side {
		if whole > 0 {
			transpose8AVX2(&dst[r], ds, &src.Data[r*src.RowStride], src.RowStride, min(side, rows-r), whole/side)
		}
		for l := r; l < min(r+side, rows); l++ {
			for p := whole; p < depth; p++ {
				dst[p*ds+l] = src.Data[l*src.RowStride+p]
			}
		}
	}
}

// prefetchRows is how many rows ahead PackCopy prefetches.
const prefetchRows = 8

// PackCopy writes pieces of so many rows of src, whose columns are contiguous: dst[i·size+p·ds+r] =
// src[i·rows+r][p]. From row `rows` to the next multiple of eight it leaves undefined values.
func PackCopy(dst []float32, size, ds int, src View, rows, pieces, depth int) {
	if pieces == 0 {
		return
	}
	read := (rows + 7) &^ 7
	for p := range depth {
		to, from := dst[p*ds:], src.Data[p*src.ColStride:]
		i := 0
		if len(from) >= read { // pieces that can be read in whole vectors within the slice
			i = min(pieces, (len(from)-read)/rows+1)
			copyPiecesAVX2(&to[0], size, &from[0], rows, i, read/8, prefetchRows*src.ColStride)
		}
		for ; i < pieces; i++ {
			copy(to[i*size:][:rows], from[i*rows:])
		}
	}
}
