package cpu

// decodeRowsGo writes dst[i·ds+j] = element i,j for the first rows and columns of a v that is not
// turned.
func decodeRowsGo(dst []float32, ds int, v coded, rows, cols int) {
	for i, first := range v.at[:rows] {
		d := dst[i*ds:][:cols]
		for j, b := range v.bytes[first:][:cols] {
			d[j] = v.number(b)
		}
	}
}

// decode writes the numbers of all elements of v, which is not turned, to dst.
func decode(dst []float32, v coded, rows, cols int) {
	for i := range rows {
		for j := 0; j < cols; j += vecBlock {
			n := min(vecBlock, cols-j)
			decodeRows(dst[i*cols+j:], n, v.from(i, j), 1, n)
		}
	}
}
