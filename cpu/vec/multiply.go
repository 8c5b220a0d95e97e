package vec

import "fspda/device"

const (
	// A panel of the second factor stays in the first-level cache while all lines of the result take
	// their part of it.
	passRows  = maxTerms - 1 // the rows that one pass adds to a line
	panelRows = 3 * passRows
	panelCols = 512
)

// panel is some rows of the second factor, panelCols numbers apart.
type panel [panelRows * panelCols]float32

// Product is a Multiply by lines: line l of the result is Σ x[l,k]·y[k], over the rows of y. Lines
// are the rows of the result, or its columns: then x and y are the second and the first factor.
type Product struct {
	c, x, y        matrix
	inner          int
	alphaX, alphaY float64 // One of them is alpha, the other 1.
	beta           float32
}

// matrix is numbers and how a matrix selects them: line l has number v[l·line+j·step] at place j.
type matrix struct {
	v           []float32
	line, step  int
	lines, size int
}

func matrixOf(v device.Vector, w device.View) matrix {
	return matrix{numbers(v)[min(w.Offset, v.Len()):], w.Down, w.Right, w.Rows, w.Cols}
}

// ProductOf returns the product of a Multiply. Its lines are such that the numbers of a line are
// adjacent, or else that lines are long.
func ProductOf(op *device.Op) Product {
	w := op.Product
	byRows, byColumns := w.C.Right == 1 || w.C.Cols < 2, w.C.Down == 1 || w.C.Rows < 2
	p := Product{inner: w.A.Cols, alphaX: w.Alpha, alphaY: 1, beta: float32(w.Beta)}
	a, b := w.A, w.B
	p.c, p.x, p.y = matrixOf(op.Out[0], w.C), matrixOf(op.In[0], a), matrixOf(op.In[1], b)
	if byColumns && !byRows || byColumns == byRows && w.C.Rows > w.C.Cols {
		p.c, p.x, p.y = matrixOf(op.Out[0], w.C.T()), matrixOf(op.In[1], b.T()), matrixOf(op.In[0], a.T())
		p.alphaX, p.alphaY = 1, w.Alpha
	}
	return p
}

// Size returns how many independent parts the product has, and the multiplications of one.
func (p *Product) Size() (parts, work int) {
	if p.byLines() {
		return p.c.lines, p.c.size * p.inner
	}
	return p.c.size, p.c.lines * p.inner
}

// byLines reports whether the parts of the product are lines, and not places in all lines.
func (p *Product) byLines() bool { return p.c.lines > p.c.size }

// Part computes the parts from, ..., to-1 of the product.
func (p *Product) Part(from, to int) {
	if p.byLines() {
		p.compute(from, to, 0, p.c.size)
	} else {
		p.compute(0, p.c.lines, from, to)
	}
}

// compute computes the places begin, ..., end-1 of some lines.
func (p *Product) compute(from, to, begin, end int) {
	var y panel
	var line [panelCols]float32
	for j := begin; j < end; j += panelCols {
		n := min(panelCols, end-j)
		for k := 0; k == 0 || k < p.inner; k += panelRows {
			rows := p.pack(&y, k, j, n)
			for l := from; l < to; l++ {
				d := p.load(&line, l, j, n)
				if k == 0 {
					p.begin(d)
				}
				p.add(d, l, k, &y, rows)
				p.store(d, l, j)
			}
		}
	}
}

// pack copies n places of rows of y, from row k and place j on, to a panel and scales them. It
// returns how many rows the panel has.
func (p *Product) pack(to *panel, k, j, n int) (rows int) {
	rows = min(panelRows, p.inner-k)
	for i := range rows {
		row, from := to[i*panelCols:][:n], p.y.v[(k+i)*p.y.line+j*p.y.step:]
		if p.y.step == 1 {
			copy(row, from)
		} else {
			for l := range row {
				row[l] = from[l*p.y.step]
			}
		}
		if p.alphaY != 1 {
			for l, v := range row {
				row[l] = float32(p.alphaY * float64(v))
			}
		}
	}
	return rows
}

// load returns n places of line l of the result, from place j on, in their vector or in memory.
func (p *Product) load(memory *[panelCols]float32, l, j, n int) []float32 {
	from := p.c.v[l*p.c.line+j*p.c.step:]
	if p.c.step == 1 || n == 1 {
		return from[:n]
	}
	for i := range n {
		memory[i] = from[i*p.c.step]
	}
	return memory[:n]
}

// store writes what load returned back.
func (p *Product) store(d []float32, l, j int) {
	if p.c.step == 1 || len(d) == 1 {
		return
	}
	to := p.c.v[l*p.c.line+j*p.c.step:]
	for i, v := range d {
		to[i*p.c.step] = v
	}
}

func (p *Product) begin(d []float32) {
	switch p.beta {
	case 0:
		clear(d)
	case 1:
	default:
		c := combination{}.plus(p.beta, d)
		combine(d, &c, false)
	}
}

// add adds the products of line l of x with the rows of a panel, which begin at row k of y.
func (p *Product) add(d []float32, l, k int, y *panel, rows int) {
	x := p.x.v[min(l*p.x.line+k*p.x.step, len(p.x.v)):]
	for i := 0; i < rows; i += passRows {
		c := combination{terms: 1 + min(passRows, rows-i)}
		c.a[0], c.v[0] = 1, d
		for t := 1; t < c.terms; t++ {
			c.a[t], c.v[t] = x[(i+t-1)*p.x.step], y[(i+t-1)*panelCols:][:len(d)]
			if p.alphaX != 1 {
				c.a[t] = float32(p.alphaX * float64(c.a[t]))
			}
		}
		combine(d, &c, false)
	}
}
