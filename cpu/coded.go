package cpu

import "fmt"

// coded is a matrix of bytes that stand for numbers, scale·byte + shift each, the product rounded
// first. Its rows may lie anywhere: element i,j is bytes[at[i]+j], or bytes[at[j]+i] where it is
// turned.
type coded struct {
	bytes        []uint8
	at           []int
	turned       bool
	scale, shift float32
}

// spareRows is how many rows at has more than the matrix: they are read, and what comes of them is
// not used.
const spareRows = 2 * 32

// from is the matrix that begins at element i,j.
func (v coded) from(i, j int) coded {
	if v.turned {
		i, j = j, i
	}
	v.at, v.bytes = v.at[i:], v.bytes[j:]
	return v
}

// transposed is the same with rows and columns exchanged.
func (v coded) transposed() coded {
	v.turned = !v.turned
	return v
}

// part is from, for a matrix that may have no bytes at all.
func (v coded) part(i, j int) coded {
	if v.bytes == nil {
		return v
	}
	return v.from(i, j)
}

// check panics unless v, which is not turned, holds rows×cols elements: the assembly trusts what it
// is given.
func (v *coded) check(name string, rows, cols int) {
	if len(v.at) < rows+spareRows {
		panic(fmt.Sprintf("cpu: gemm: %s has %d rows of bytes, want %d and %d", name, len(v.at), rows, spareRows))
	}
	for i, first := range v.at[:rows+spareRows] {
		if first < 0 || first > len(v.bytes)-cols {
			panic(fmt.Sprintf("cpu: gemm: row %d of %s begins at byte %d of %d, want %d from there on", i, name, first,
				len(v.bytes), cols))
		}
	}
}

// number is what a byte stands for.
func (v *coded) number(b uint8) float32 { return float32(float32(b)*v.scale) + v.shift }
