package kernels

import (
	"encoding/binary"
	"fmt"
	"math"

	"fspda/device"
)

var _ = define("orthogonal.cu", "orthogonal_squares part:p list:p n:l "+numbered("v", Pointer))

var _ = defineEach("orthogonal.cu", []Element{F32, BF16},
	"orthogonal_start_%s x:p stride:l part:p parts:i list:p short_side:i long_side:i least:d "+numbered("v", Pointer),
	"orthogonal_end_%s x:p stride:l list:p short_side:i long_side:i "+numbered("v", Pointer))

// squaresBlock is the squares of a partial sum, and matrixTile the side of a block's part of a
// matrix: SQUARES_BLOCK and MATRIX_TILE of orthogonal.cu.
const (
	squaresBlock = 4096
	matrixTile   = 32
)

// OrthogonalBatch is matrices of up to MostEach vectors, with the same places and factors in each,
// as a batch: the matrices of the first vector come first. In the batch a matrix has Short rows and
// Long columns. One that is higher than wide is transposed.
type OrthogonalBatch struct {
	Element     Element // The number type of the batch: F32 or BF16.
	Vectors     []Address
	List        Address // The matrices of a vector: OrthogonalList in device memory.
	Matrices    int     // How many there are in each vector.
	Short, Long int
	Stride      int     // Numbers from a matrix of the batch to the next.
	Parts       Address // Scratch of 8·SquareParts() bytes for each matrix of the batch.
}

// OrthogonalList returns a list of matrices for device memory.
func OrthogonalList(matrices []device.Orthogonal) (b []byte) {
	for _, m := range matrices {
		tall := uint32(0)
		if m.Rows > m.Cols {
			tall = 1
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(m.Offset))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(m.Scale)))
		b = binary.LittleEndian.AppendUint32(b, tall)
	}
	return b
}

// OrthogonalListBytes is the bytes of a matrix in an OrthogonalList.
const OrthogonalListBytes = 16

// SquareParts returns the partial sums of a matrix.
func (b OrthogonalBatch) SquareParts() int { return (b.Short*b.Long + squaresBlock - 1) / squaresBlock }

// Start copies the matrices from the vectors to x, divided by their norms, or by least if that is
// larger.
func (b OrthogonalBatch) Start(x Address, least float64) [2]Call {
	parts, n := b.SquareParts(), b.Short*b.Long
	return [2]Call{
		b.call("orthogonal_squares", parts, b.Parts, b.List, n),
		b.call(b.Element.name("orthogonal_start"), b.tiles(), x, b.Stride, b.Parts, parts, b.List, b.Short,
			b.Long, least),
	}
}

// End copies the matrices from x to the vectors, multiplied by their factors.
func (b OrthogonalBatch) End(x Address) Call {
	return b.call(b.Element.name("orthogonal_end"), b.tiles(), x, b.Stride, b.List, b.Short, b.Long)
}

// tiles returns the blocks of a matrix.
func (b OrthogonalBatch) tiles() int {
	return (b.Short + matrixTile - 1) / matrixTile * ((b.Long + matrixTile - 1) / matrixTile)
}

// call returns a call of a kernel with a block of the grid for each of some parts of each matrix,
// whose last arguments are the vectors.
func (b OrthogonalBatch) call(name string, parts int, args ...any) Call {
	if len(b.Vectors) < 1 || len(b.Vectors) > MostEach {
		panic(fmt.Sprintf("kernels: orthogonalization of %d vectors, want 1 to %d", len(b.Vectors), MostEach))
	}
	for i := range MostEach {
		at := Address(0)
		if i < len(b.Vectors) {
			at = b.Vectors[i]
		}
		args = append(args, at)
	}
	l := Launch{Grid: [3]uint32{uint32(parts), uint32(b.Matrices), uint32(len(b.Vectors))},
		Block: [3]uint32{threads, 1, 1}}
	return call(name, l, args...)
}
