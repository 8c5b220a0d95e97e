package device

import "fmt"

// View selects numbers of a vector as a matrix of Rows × Cols: element (i, j) is number
// Offset + i·Down + j·Right.
type View struct{ Offset, Rows, Cols, Down, Right int }

// T returns the transpose, of the same numbers.
func (w View) T() View {
	return View{Offset: w.Offset, Rows: w.Cols, Cols: w.Rows, Down: w.Right, Right: w.Down}
}

// end returns the number after the last one that the view selects.
func (w View) end() int {
	if w.Rows == 0 || w.Cols == 0 {
		return w.Offset
	}
	return w.Offset + (w.Rows-1)*w.Down + (w.Cols-1)*w.Right + 1
}

// distinct reports whether no two elements are the same number.
func (w View) distinct() bool {
	return w.Cols < 2 || w.Rows < 2 || w.Right > 0 && w.Down >= w.Cols*w.Right ||
		w.Down > 0 && w.Right >= w.Rows*w.Down
}

// Matrix is a view of a vector.
type Matrix struct {
	V Vector
	View
}

// Rows returns the numbers of v from offset on as a matrix that is stored by rows.
func Rows(v Vector, offset, rows, cols int) Matrix {
	return Matrix{v, View{Offset: offset, Rows: rows, Cols: cols, Down: cols, Right: 1}}
}

// T returns the transpose, of the same numbers.
func (m Matrix) T() Matrix { return Matrix{m.V, m.View.T()} }

// MatrixProduct holds the views and the coefficients of a [Multiply], whose vectors are Op.Out and
// Op.In.
type MatrixProduct struct {
	C, A, B     View
	Alpha, Beta float64
}

// checkProduct panics unless the matrices of a Multiply fit each other and their vectors.
func (op *Op) checkProduct() {
	c, a, b := op.Product.C, op.Product.A, op.Product.B
	if a.Rows != c.Rows || a.Cols != b.Rows || b.Cols != c.Cols {
		panic(fmt.Sprintf("device: Multiply: a matrix of %d×%d times one of %d×%d into one of %d×%d", a.Rows, a.Cols,
			b.Rows, b.Cols, c.Rows, c.Cols))
	}
	for _, m := range []Matrix{{op.Out[0], c}, {op.In[0], a}, {op.In[1], b}} {
		if n := m.V.Len(); min(m.Offset, m.Rows, m.Cols, m.Down, m.Right) < 0 || m.end() > n {
			panic(fmt.Sprintf("device: Multiply: the view %+v is not within its vector of length %d", m.View, n))
		}
	}
	if !c.distinct() {
		panic(fmt.Sprintf("device: Multiply: the view %+v selects a number of the result twice", c))
	}
	for k, w := range []View{a, b} {
		if op.In[k] == op.Out[0] && w.Offset < c.end() && c.Offset < w.end() {
			panic(fmt.Sprintf("device: Multiply: the view %+v of the result overlaps with the factor %+v", c, w))
		}
	}
}
