package gemm

import (
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// after says what follows a product, element by element.
type epilogueOp uint8

const (
	noEpilogue       epilogueOp = iota
	addBias                     // c + with[j]
	biasSigmoid                 // 1/(1+exp(-(c + with[j])))
	biasReLU                    // max(c + with[j], 0)
	timesSigmoidGrad            // c·y·(1-y), y = with[i][j]
	timesReLUGrad               // c where with[i][j] > 0, else 0
)

// epilogue is what becomes of each element c of a product C once all of its products are added up.
// It rounds as the kernel of the same name does that would follow in a pass of its own (addRow,
// sigmoids, relus, sigmoidGrads, reluGrads), so that a fused layer and its two kernels agree to the
// last bit. It is done piece by piece, while a piece lies in the first cache.
type epilogue struct {
	op      epilogueOp
	operand []float32 // a row as long as C is wide, or a matrix like C with rows as far apart
}

// apply finishes rows×cols elements of C that begin at element i,j, given as the view c.
func (e *epilogue) apply(i, j, rows, cols int, c tile.View) {
	switch e.op {
	case noEpilogue:
	case addBias:
		e.addBias(j, rows, cols, c)
	case biasSigmoid, biasReLU:
		e.addBias(j, rows, cols, c)
		e.elementwise(i, j, rows, cols, c)
	default:
		e.elementwise(i, j, rows, cols, c)
	}
}

func (e *epilogue) addBias(j, rows, cols int, c tile.View) {
	bias := e.operand[j:][:cols]
	for r := range rows {
		vec.AddRow(c.Data[r*c.RowStride:][:cols], bias)
	}
}

// eachRun does the element-wise part on rows, or on all of them as one where they follow one
// another.
func (e *epilogue) elementwise(i, j, rows, cols int, c tile.View) {
	if cols == c.RowStride {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		x := c.Data[r*c.RowStride:][:cols]
		switch e.op {
		case biasSigmoid:
			vec.Sigmoids(x, x)
		case biasReLU:
			vec.ReLUs(x, x, false)
		case timesSigmoidGrad:
			vec.SigmoidGrads(x, e.operandAt(i+r, j, cols, c.RowStride), x, false)
		case timesReLUGrad:
			vec.ReLUGrads(x, e.operandAt(i+r, j, cols, c.RowStride), x, false)
		}
	}
}

// beside is the part of a matrix like C that belongs to n elements from i,j on.
func (e *epilogue) operandAt(i, j, n, rs int) []float32 { return e.operand[i*rs+j:][:n] }

// check panics unless the epilogue has what an m×n product with rows ldc apart needs.
func (e *epilogue) check(m, n, ldc int) {
	need := 0
	switch e.op {
	case noEpilogue:
	case addBias, biasSigmoid, biasReLU:
		need = n
	default:
		need = (m-1)*ldc + n
	}
	if len(e.operand) < need {
		panic("cpu: gemm: what follows the product has too few numbers")
	}
}

// rows is what the epilogue has for C from row i on, whose rows lie ldc apart.
func (e *epilogue) fromRow(i, ldc int) []float32 {
	switch e.op {
	case timesSigmoidGrad, timesReLUGrad:
		return e.operand[min(i*ldc, len(e.operand)):]
	}
	return e.operand
}

// cols is what the epilogue has for C from column j on.
func (e *epilogue) fromCol(j int) []float32 { return e.operand[min(j, len(e.operand)):] }
