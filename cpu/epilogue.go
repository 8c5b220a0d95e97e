package cpu

// after says what follows a product, element by element.
type after uint8

const (
	nothing         after = iota
	addBias               // c + with[j]
	biasThenSigmoid       // 1/(1+exp(-(c + with[j])))
	biasThenReLU          // max(c + with[j], 0)
	bySigmoid             // c·y·(1-y), y = with[i][j]
	byReLU                // c where with[i][j] > 0, else 0
)

// epilogue is what becomes of each element c of a product C once all of its products are added up.
// It rounds as the kernel of the same name does that would follow in a pass of its own (addRow,
// sigmoids, relus, sigmoidGrads, reluGrads), so that a fused layer and its two kernels agree to the
// last bit. It is done piece by piece, while a piece lies in the first cache.
type epilogue struct {
	then after
	with []float32 // a row as long as C is wide, or a matrix like C with rows as far apart
}

// apply finishes rows×cols elements of C that begin at element i,j, given as the view c.
func (e *epilogue) apply(i, j, rows, cols int, c view) {
	switch e.then {
	case nothing:
	case addBias:
		e.addBias(j, rows, cols, c)
	case biasThenSigmoid, biasThenReLU:
		e.addBias(j, rows, cols, c)
		e.eachRun(i, j, rows, cols, c)
	default:
		e.eachRun(i, j, rows, cols, c)
	}
}

func (e *epilogue) addBias(j, rows, cols int, c view) {
	bias := e.with[j:][:cols]
	for r := range rows {
		addRow(c.data[r*c.rs:][:cols], bias)
	}
}

// eachRun does the element-wise part on rows, or on all of them as one where they follow one
// another.
func (e *epilogue) eachRun(i, j, rows, cols int, c view) {
	if cols == c.rs {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		x := c.data[r*c.rs:][:cols]
		switch e.then {
		case biasThenSigmoid:
			sigmoids(x, x)
		case biasThenReLU:
			relus(x, x, false)
		case bySigmoid:
			sigmoidGrads(x, e.beside(i+r, j, cols, c.rs), x, false)
		case byReLU:
			reluGrads(x, e.beside(i+r, j, cols, c.rs), x, false)
		}
	}
}

// beside is the part of a matrix like C that belongs to n elements from i,j on.
func (e *epilogue) beside(i, j, n, rs int) []float32 { return e.with[i*rs+j:][:n] }

// check panics unless the epilogue has what an m×n product with rows ldc apart needs.
func (e *epilogue) check(m, n, ldc int) {
	need := 0
	switch e.then {
	case nothing:
	case addBias, biasThenSigmoid, biasThenReLU:
		need = n
	default:
		need = (m-1)*ldc + n
	}
	if len(e.with) < need {
		panic("cpu: gemm: what follows the product has too few numbers")
	}
}

// rows is what the epilogue has for C from row i on, whose rows lie ldc apart.
func (e *epilogue) rows(i, ldc int) []float32 {
	switch e.then {
	case bySigmoid, byReLU:
		return e.with[min(i*ldc, len(e.with)):]
	}
	return e.with
}

// cols is what the epilogue has for C from column j on.
func (e *epilogue) cols(j int) []float32 { return e.with[min(j, len(e.with)):] }
