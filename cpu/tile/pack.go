package tile

// PackTransposed writes rows×depth elements of src, whose rows are contiguous, transposed:
// dst[p·ds+r] = src[r][p]. From row `rows` to the next multiple of eight it leaves undefined
// values.
func PackTransposed(dst []float32, ds int, src View, rows, depth int) {
	const side = 8 // rows and columns of the square that transpose8Asm transposes
	whole := depth / side * side
	for r := 0; r < rows; r += side {
		if whole > 0 {
			transpose8Asm(&dst[r], ds, &src.Data[r*src.RowStride], src.RowStride, min(side, rows-r), whole/side)
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

// PackCopy writes pieces of src, each of some rows, whose columns are contiguous:
// dst[i·size+p·ds+r] = src[i·rows+r][p]. From row `rows` to the next multiple of eight it leaves
// undefined values.
func PackCopy(dst []float32, size, ds int, src View, rows, pieces, depth int) {
	if pieces == 0 {
		return
	}
	read, ahead := (rows+7)&^7, prefetchRows*src.ColStride
	whole := 0 // columns whose pieces can all be read in whole vectors within the slice
	if left := len(src.Data) - (pieces-1)*rows - read; left >= 0 {
		whole = min(depth, left/src.ColStride+1)
		copyPiecesAsm(&dst[0], ds, size, &src.Data[0], src.ColStride, rows, whole, pieces, read/8, ahead)
	}
	for p := whole; p < depth; p++ {
		to, from := dst[p*ds:], src.Data[p*src.ColStride:]
		for i := range pieces {
			copy(to[i*size:][:rows], from[i*rows:])
		}
	}
}
