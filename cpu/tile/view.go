package tile

import "fmt"

//go:generate go run -C ../../tools/asm ./tilegen ../../cpu/tile

// Depth is the largest number of products that an accumulator takes before it is added to C. It is
// part of the definition of a product: another depth gives other last bits.
const Depth = 384

// Chunks returns the number of chunks that the k products of an element are cut into. Chunk c is
// kernel.Split(c, Chunks(k), k).
func Chunks(k int) int { return (k + Depth - 1) / Depth }

// View is a matrix in memory: element i,j is Data[i·RowStride+j·ColStride].
type View struct {
	Data                 []float32
	RowStride, ColStride int
}

// RowMajor returns a matrix whose rows lie stride numbers apart.
func RowMajor(data []float32, stride int) View { return View{data, stride, 1} }

// ColMajor returns a matrix whose columns lie stride numbers apart.
func ColMajor(data []float32, stride int) View { return View{data, 1, stride} }

// T returns the transpose, in the same memory.
func (v View) T() View { return View{v.Data, v.ColStride, v.RowStride} }

// From returns the matrix that begins at element i,j.
func (v View) From(i, j int) View {
	return View{v.Data[i*v.RowStride+j*v.ColStride:], v.RowStride, v.ColStride}
}

// Check panics unless v holds rows×cols elements, none of them twice: the assembly does not check
// bounds.
func (v View) Check(name string, rows, cols int) {
	byRows := v.ColStride == 1 && (rows == 1 || v.RowStride >= cols)
	byCols := v.RowStride == 1 && (cols == 1 || v.ColStride >= rows)
	need := (rows-1)*v.RowStride + (cols-1)*v.ColStride + 1
	if rows < 0 || cols < 0 || need > len(v.Data) || !byRows && !byCols {
		panic(fmt.Sprintf("cpu: gemm: %s has %d numbers with a row stride of %d and a column stride of %d, want "+
			"%d numbers for %d×%d", name, len(v.Data), v.RowStride, v.ColStride, need, rows, cols))
	}
}

// MinParallelWork is how many multiply-adds are worth another goroutine: some microseconds of them.
const MinParallelWork = 1 << 20
