package vec

import (
	"fspda/cpu/isa"
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

// DecodeRows is decodeRowsGo. rows·cols is at most some thousands.
func DecodeRows(dst []float32, ds int, v kernel.ByteMatrix, rows, cols int) {
	whole := 0
	switch {
	case isa.Active.Masked():
		whole = cols
	case isa.Assembly():
		whole = cols &^ (isa.Active.Lanes() - 1)
	}
	if whole > 0 {
		decodeRowsAsm(&dst[0], ds, &v.Bytes[0], &v.Starts[0], rows, whole, v.Scale, v.Shift)
	}
	if whole < cols {
		decodeRowsGo(dst[whole:], ds, v.From(0, whole), rows, cols-whole)
	}
}

// DecodePanels writes panels that are two vectors wide and size numbers apart: the first rows of v,
// which is not transposed.
func DecodePanels(dst []float32, size int, v kernel.ByteMatrix, rows, panels int) {
	decodePanelsAsm(&dst[0], size, &v.Bytes[0], &v.Starts[0], rows, panels, v.Scale, v.Shift)
}

// byteBlock is how many columns of bytes are transposed at a time.
const byteBlock = 16

// PanelWidth is the width of the panels of DecodePanels and DecodeColumns.
func PanelWidth() int { return 2 * isa.Active.Lanes() }

// DecodeColumns is decodeColumnsGo for a panel. It prefetches the columns of the next panel.
func DecodeColumns(dst []float32, v kernel.ByteMatrix, depth int) {
	ds := PanelWidth()
	if depth < byteBlock {
		decodeColumnsGo(dst, v, depth)
		return
	}
	decodeColumnsAsm(&dst[0], ds, &v.Bytes[0], &v.Starts[0], depth/byteBlock, v.Scale, v.Shift)
	if depth%byteBlock != 0 { // the last ones, some of them again
		last := depth - byteBlock
		decodeColumnsAsm(&dst[last*ds], ds, &v.Bytes[last], &v.Starts[0], 1, v.Scale, v.Shift)
	}
}

// decodeColumnsGo writes a panel of the first columns of v, which is transposed: dst[p·width+r] =
// element p,r for p < depth.
func decodeColumnsGo(dst []float32, v kernel.ByteMatrix, depth int) {
	width := PanelWidth()
	for r, first := range v.Starts[:width] {
		for p, b := range v.Bytes[first:][:depth] {
			dst[p*width+r] = v.Number(b)
		}
	}
}

// PrefetchRows prefetches n bytes of each of some rows, which begin at src + at[r], into the
// second-level cache.
func PrefetchRows(src *uint8, at *int, rows, n int) { prefetchRowsAsm(src, at, rows, n) }
