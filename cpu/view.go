package cpu

import "fmt"

//go:generate go run ./internal/gemmgen

// gemmDepth is how many products an accumulator takes at most before it is added to C. It is part
// of the definition of gemm: another depth gives other last bits.
const gemmDepth = 384

// gemmChunks is how many chunks the k products of an element are cut into. Chunk c of them is
// share(c, gemmChunks(k), k).
func gemmChunks(k int) int { return (k + gemmDepth - 1) / gemmDepth }

// view is an operand: element i,j of it is data[i·rs+j·cs].
type view struct {
	data   []float32
	rs, cs int
}

// from is the view that begins at element i,j.
func (v view) from(i, j int) view { return view{v.data[i*v.rs+j*v.cs:], v.rs, v.cs} }

// check panics unless v holds rows×cols elements, none of them twice: the assembly trusts what it
// is given.
func (v view) check(name string, rows, cols int) {
	byRows := v.cs == 1 && (rows == 1 || v.rs >= cols)
	byCols := v.rs == 1 && (cols == 1 || v.cs >= rows)
	need := (rows-1)*v.rs + (cols-1)*v.cs + 1
	if rows < 0 || cols < 0 || need > len(v.data) || !byRows && !byCols {
		panic(fmt.Sprintf("cpu: gemm: %s has %d numbers, rows %d and columns %d apart: want %d numbers for %d×%d",
			name, len(v.data), v.rs, v.cs, need, rows, cols))
	}
}
