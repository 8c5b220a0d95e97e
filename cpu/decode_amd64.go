//go:build !noasm

package cpu

import "fspda/cpu/isa"

// decodeRows is decodeRowsGo. rows·cols is at most some thousands.
func decodeRows(dst []float32, ds int, v coded, rows, cols int) {
	whole := cols
	switch isa.Active {
	case isa.AVX512:
		decodeRowsAVX512(&dst[0], ds, &v.bytes[0], &v.at[0], rows, cols, v.scale, v.shift)
	case isa.AVX2:
		if whole = cols &^ 7; whole > 0 {
			decodeRowsAVX2(&dst[0], ds, &v.bytes[0], &v.at[0], rows, whole, v.scale, v.shift)
		}
	default:
		whole = 0
	}
	if whole < cols {
		decodeRowsGo(dst[whole:], ds, v.from(0, whole), rows, cols-whole)
	}
}

// decodePanels writes panels of two vectors, size numbers from one to the next: of the first rows
// of a v that is not turned.
func decodePanels(dst []float32, size int, v coded, rows, panels int) {
	if isa.Active == isa.AVX512 {
		decodePanelsAVX512(&dst[0], size, &v.bytes[0], &v.at[0], rows, panels, v.scale, v.shift)
		return
	}
	decodePanelsAVX2(&dst[0], size, &v.bytes[0], &v.at[0], rows, panels, v.scale, v.shift)
}

// byteBlock is how many columns of bytes are transposed at a time.
const byteBlock = 16

// panelWidth is how wide the panels of decodePanels and decodeColumns are.
func panelWidth() int {
	if isa.Active == isa.AVX512 {
		return 32
	}
	return 16
}

// decodeColumns is decodeColumnsGo for a panel. It asks the caches for the columns of the next
// panel.
func decodeColumns(dst []float32, v coded, depth int) {
	ds := panelWidth()
	if depth < byteBlock {
		decodeColumnsGo(dst, v, depth)
		return
	}
	decode := decodeColumnsAVX2
	if isa.Active == isa.AVX512 {
		decode = decodeColumnsAVX512
	}
	decode(&dst[0], ds, &v.bytes[0], &v.at[0], depth/byteBlock, v.scale, v.shift)
	if depth%byteBlock != 0 { // the last ones, some of them again
		last := depth - byteBlock
		decode(&dst[last*ds], ds, &v.bytes[last], &v.at[0], 1, v.scale, v.shift)
	}
}

// decodeColumnsGo writes a panel of the first columns of a v that is turned: dst[p·width+r] =
// element p,r for p below depth.
func decodeColumnsGo(dst []float32, v coded, depth int) {
	width := panelWidth()
	for r, first := range v.at[:width] {
		for p, b := range v.bytes[first:][:depth] {
			dst[p*width+r] = v.number(b)
		}
	}
}
