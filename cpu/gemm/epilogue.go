package gemm

import (
	"fmt"

	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// epilogueOp is the element-wise operation that follows a product.
type epilogueOp uint8

const (
	noEpilogue       epilogueOp = iota
	addBias                     // c + operand[j]
	biasSigmoid                 // 1/(1+exp(-(c + operand[j])))
	biasReLU                    // max(c + operand[j], 0)
	timesSigmoidGrad            // c·y·(1-y), y = operand[i][j]
	timesReLUGrad               // c if operand[i][j] > 0, else 0
	biasGELU                    // c + operand[j], and result = GELU of that
	thenGELU                    // c, and result = GELU of that
	timesGELUGrad               // c times the derivative of GELU at operand[i][j]
)

// epilogue is applied to each element c of a product once all its products are added. It rounds as
// the separate kernel would (vec.AddRow, Sigmoids, ReLUs, SigmoidGrads, ReLUGrads), so that a fused
// layer and its two kernels are bit-identical. It runs strip by strip, while a strip is in the
// first-level cache.
type epilogue struct {
	op      epilogueOp
	operand []float32 // a row as long as C is wide, or a matrix like C with the same row stride
	result  []float32 // the output of GELU, a matrix like C
	form    vec.GELUForm
}

// apply applies the epilogue to rows×cols elements of C that begin at element i,j; c is a view of
// them.
func (e *epilogue) apply(i, j, rows, cols int, c tile.View) {
	switch e.op {
	case noEpilogue:
	case addBias:
		e.addBias(j, rows, cols, c)
	case biasSigmoid, biasReLU, biasGELU:
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

// elementwise applies the part after the bias, row by row, or to all rows at once if they are
// contiguous.
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
		case biasGELU, thenGELU:
			vec.GELUs(e.form, e.result[(i+r)*c.RowStride+j:][:cols], x)
		case timesGELUGrad:
			vec.GELUGrads(e.form, x, e.operandAt(i+r, j, cols, c.RowStride), x)
		}
	}
}

// operandAt returns n elements of a matrix operand from element i,j on.
func (e *epilogue) operandAt(i, j, n, rs int) []float32 { return e.operand[i*rs+j:][:n] }

// check panics unless the operand is large enough for an m×n product whose rows lie ldc apart.
func (e *epilogue) check(m, n, ldc int) {
	need, result := 0, 0
	switch e.op {
	case noEpilogue:
	case addBias, biasSigmoid, biasReLU:
		need = n
	case biasGELU:
		need, result = n, (m-1)*ldc+n
	case thenGELU:
		result = (m-1)*ldc + n
	default:
		need = (m-1)*ldc + n
	}
	if len(e.operand) < need || len(e.result) < result {
		panic(fmt.Sprintf("cpu: gemm: the epilogue has %d numbers and %d results, want %d and %d", len(e.operand),
			len(e.result), need, result))
	}
}

// fromRow returns the epilogue for C from row i on, whose rows lie ldc apart.
func (e epilogue) fromRow(i, ldc int) epilogue {
	switch e.op {
	case timesSigmoidGrad, timesReLUGrad, timesGELUGrad:
		e.operand = e.operand[min(i*ldc, len(e.operand)):]
	}
	e.result = e.result[min(i*ldc, len(e.result)):]
	return e
}

// fromCol returns the epilogue for C from column j on.
func (e epilogue) fromCol(j int) epilogue {
	e.operand, e.result = e.operand[min(j, len(e.operand)):], e.result[min(j, len(e.result)):]
	return e
}
