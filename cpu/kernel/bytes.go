package kernel

import "fmt"

// ByteMatrix is a matrix of bytes that stand for numbers: byte b stands for Scale·b + Shift, the
// product rounded first. Its rows may lie anywhere: element i,j is Bytes[Starts[i]+j], or
// Bytes[Starts[j]+i] if it is Transposed.
type ByteMatrix struct {
	Bytes        []uint8
	Starts       []int
	Transposed   bool
	Scale, Shift float32
}

// ExtraRows is how many more rows Starts has than the matrix: the assembly reads them, and does not
// use their values.
const ExtraRows = 2 * 32

// From returns the matrix that begins at element i,j, or v if that has no bytes.
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

// Transpose returns the matrix with rows and columns exchanged.
func (v ByteMatrix) Transpose() ByteMatrix {
	v.Transposed = !v.Transposed
	return v
}

// Check panics unless v, which is not transposed, holds rows×cols elements: the assembly does not
// check bounds.
func (v *ByteMatrix) Check(name string, rows, cols int) {
	if len(v.Starts) < rows+ExtraRows {
		panic(fmt.Sprintf("cpu: gemm: %s has %d rows of bytes, want %d and %d extra rows", name, len(v.Starts), rows,
			ExtraRows))
	}
	for i, first := range v.Starts[:rows+ExtraRows] {
		if first < 0 || first > len(v.Bytes)-cols {
			panic(fmt.Sprintf("cpu: gemm: row %d of %s begins at byte %d of %d, want %d bytes behind it",
				i, name, first, len(v.Bytes), cols))
		}
	}
}

// Number returns the number that a byte stands for.
func (v *ByteMatrix) Number(b uint8) float32 { return float32(float32(b)*v.Scale) + v.Shift }
