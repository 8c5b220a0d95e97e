package tile

import (
	"testing"

	"fspda/cpu/isa"
	"fspda/internal/testing/kerneltest"
)

// Both functions write element r,p of piece i where the micro-kernels look for it, and write
// nothing behind the next multiple of eight rows.
func TestPack(t *testing.T) {
	if !isa.Assembly() { // nothing packs then
		return
	}
	const ds, mark = 32, -7
	for _, rows := range []int{1, 3, 7, 8, 9, 14, 15, 16, 17, 31, 32} {
		for _, depth := range []int{1, 2, 7, 8, 9, 23} {
			for pieces := 1; pieces <= 3; pieces++ {
				size := ds * depth
				dst := make([]float32, pieces*size)
				across, along := kerneltest.Noise("across", pieces*rows*depth), kerneltest.Noise("along",
					pieces*rows*depth)
				for _, src := range []View{{across, depth, 1}, {along, 1, pieces * rows}} {
					for i := range dst {
						dst[i] = mark
					}
					if src.RowStride == 1 {
						PackCopy(dst, size, ds, src, rows, pieces, depth)
					} else {
						for i := range pieces {
							PackTransposed(dst[i*size:], ds, src.From(i*rows, 0), rows, depth)
						}
					}
					checkPacked(t, dst, src, rows, pieces, depth, size, ds, mark)
				}
			}
		}
	}
}

func checkPacked(t *testing.T, dst []float32, src View, rows, pieces, depth, size, ds int, mark float32) {
	t.Helper()
	for i := range pieces {
		for p := range depth {
			for r := range ds {
				got := dst[i*size+p*ds+r]
				if r < rows && got != src.Data[(i*rows+r)*src.RowStride+p*src.ColStride] {
					t.Fatalf("%d×%d: row %d, column %d of piece %d is %v", rows, depth, r, p, i, got)
				}
				if r >= (rows+7)&^7 && got != mark {
					t.Fatalf("%d×%d: word %d behind column %d of piece %d was written", rows, depth, r, p, i)
				}
			}
		}
	}
}
