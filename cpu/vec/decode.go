package vec

import (
	"fspda/cpu/kernel"
)

// decodeRowsGo writes dst[i·ds+j] = element i,j for the first rows and columns of v, which is not
// transposed.
func decodeRowsGo(dst []float32, ds int, v kernel.ByteMatrix, rows, cols int) {
	for i, first := range v.Starts[:rows] {
		d := dst[i*ds:][:cols]
		for j, b := range v.Bytes[first:][:cols] {
			d[j] = v.Number(b)
		}
	}
}

// Decode writes the numbers of all elements of v, which is not transposed, to dst.
func Decode(dst []float32, v kernel.ByteMatrix, rows, cols int) {
	for i := range rows {
		for j := 0; j < cols; j += vecBlock {
			n := min(vecBlock, cols-j)
			DecodeRows(dst[i*cols+j:], n, v.From(i, j), 1, n)
		}
	}
}
