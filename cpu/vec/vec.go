package vec

//go:generate go run -C ../../tools/asm ./vecgen ../../cpu/vec

// The loops over long vectors are written twice: in Go, with names that end in Go, which are their
// definition and run without assembly; and in assembly, for AVX-512, AVX2 and NEON, by the command in
// tools/asm/vecgen. loops.go and the files of the topics choose. Each function divides its vectors
// into blocks, since the scheduler cannot stop a goroutine inside assembly.

const (
	vecBlock = 4096 // numbers of a vector in one call of assembly: a microsecond or two
	maxTerms = 6    // vectors combined in one pass
	rowSums  = 16   // partial sums of a row of exponentials
	dotSums  = 32   // partial sums of a block of a scalar product
	colBlock = 64   // columns that are summed at a time
	wideSums = 4    // columns of a wide block for each lane: 8 vectors of float64
)

// combination is Σ a[k]·v[k] for k < terms. All vectors are as long as the one that takes the
// result.
type combination struct {
	v     [maxTerms][]float32
	a     [maxTerms]float32
	terms int
}

// plus returns c with one more term. It takes c by value, so that combinations stay on the stack.
func (c combination) plus(a float32, v []float32) combination {
	c.v[c.terms], c.a[c.terms] = v, a
	c.terms++
	return c
}
