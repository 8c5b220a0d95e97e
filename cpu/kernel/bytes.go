package kernel

import "fmt"

// coded is a matrix of bytes that stand for numbers, scale·byte + shift each, the product rounded
// first. Its rows may lie anywhere: element i,j is bytes[at[i]+j], or bytes[at[j]+i] where it is
// turned.
type ByteMatrix struct {
	Bytes        []uint8
	Starts       []int
	Transposed   bool
	Scale, Shift float32
}

// spareRows is how many rows at has more than the matrix: they are read, and what comes of them is
// not used.
const ExtraRows = 2 * 32

// from is the matrix that begins at element i,j, or v where that has no bytes.
func (v ByteMatrix) From(i, j int) ByteMatrix {
	if v.Bytes == nil {
		return v
	}
	if v.Transposed {
		i, j = j, i
	}
	v.Starts, v.Bytes = v.Starts[i:], v.Bytes[j:]
	return v
}

// transposed is the same with rows and columns exchanged.
func (v ByteMatrix) Transpose() ByteMatrix {
	v.Transposed = !v.Transposed
	return v
}

// check panics unless v, which is not turned, holds rows×cols elements: the assembly trusts what it
// is given.
func (v *ByteMatrix) Check(name string, rows, cols int) {
	if len(v.Starts) < rows+ExtraRows {
		panic(fmt.Sprintf("cpu: gemm: %s has %d rows of bytes, want %d and %d", name, len(v.Starts), rows, ExtraRows))
	}
	for i, first := range v.Starts[:rows+ExtraRows] {
		if first < 0 || first > len(v.Bytes)-cols {
			panic(fmt.Sprintf("cpu: gemm: row %d of %s begins at byte %d of %d, want %d from there on", i, name, first,
				len(v.Bytes), cols))
		}
	}
}

// number is what a byte stands for.
func (v *ByteMatrix) Number(b uint8) float32 { return float32(float32(b)*v.Scale) + v.Shift }
