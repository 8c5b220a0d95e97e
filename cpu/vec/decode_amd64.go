//go:build !noasm && !fspda_noasm

package vec

import (
	"fspda/cpu/isa"
	"fspda/cpu/kernel"
)

// DecodeRows is decodeRowsGo. rows·cols is at most some thousands.
func DecodeRows(dst []float32, ds int, v kernel.ByteMatrix, rows, cols int) {
	whole := cols
	switch isa.Active {
	case isa.AVX512:
		decodeRowsAVX512(&dst[0], ds, &v.Bytes[0], &v.Starts[0], rows, cols, v.Scale, v.Shift)
	case isa.AVX2:
		if whole = cols &^ 7; whole > 0 {
			decodeRowsAVX2(&dst[0], ds, &v.Bytes[0], &v.Starts[0], rows, whole, v.Scale, v.Shift)
		}
	default:
		whole = 0
	}
	if whole < cols {
		decodeRowsGo(dst[whole:], ds, v.From(0, whole), rows, cols-whole)
	}
}

// DecodePanels writes panels that are two vectors wide and size numbers apart: the first rows of v,
// which is not transposed.
func DecodePanels(dst []float32, size int, v kernel.ByteMatrix, rows, panels int) {
	if isa.Active == isa.AVX512 {
		decodePanelsAVX512(&dst[0], size, &v.Bytes[0], &v.Starts[0], rows, panels, v.Scale, v.Shift)
		return
	}
	decodePanelsAVX2(&dst[0], size, &v.Bytes[0], &v.Starts[0], rows, panels, v.Scale, v.Shift)
}

// byteBlock is how many columns of bytes are transposed at a time.
const byteBlock = 16

// PanelWidth is the width of the panels of DecodePanels and DecodeColumns.
func PanelWidth() int {
	if isa.Active == isa.AVX512 {
		return 32
	}
	return 16
}

// DecodeColumns is decodeColumnsGo for a panel. It prefetches the columns of the next panel.
func DecodeColumns(dst []float32, v kernel.ByteMatrix, depth int) {
	ds := PanelWidth()
	if depth < byteBlock {
		decodeColumnsGo(dst, v, depth)
		return
	}
	decode := decodeColumnsAVX2
	if isa.Active == isa.AVX512 {
		decode = decodeColumnsAVX512
	}
	decode(&dst[0], ds, &v.Bytes[0], &v.Starts[0], depth/byteBlock, v.Scale, v.Shift)
	if depth%byteBlock != 0 { // the last ones, some of them again
		last := depth - byteBlock
		decode(&dst[last*ds], ds, &v.Bytes[last], &v.Starts[0], 1, v.Scale, v.Shift)
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
func PrefetchRows(src *uint8, at *int, rows, n int) { prefetchRowsAVX2(src, at, rows, n) }
