package device

import "fmt"

// Range is the coordinates From, …, To-1 of a vector.
type Range struct{ From, To int }

// Block is a matrix of Rows × Cols, stored by rows from number Offset of a vector on.
type Block struct{ Offset, Rows, Cols int }

// Len returns how many numbers the matrix has.
func (b Block) Len() int { return b.Rows * b.Cols }

// Scratch returns the most numbers of working memory that an [Orthogonalize] of the matrix takes, with
// rows a little longer than the matrix has.
func (b Block) Scratch() int {
	const longer = 16
	side := min(b.Rows, b.Cols)
	return 2*b.Rows*(b.Cols+longer) + 2*side*(side+longer)
}

// Orthogonal is a matrix of an [Orthogonalize], with the factor of its result.
type Orthogonal struct {
	Block
	Scale float64
}

// The polynomial p(X) = A·X + B·(X·Xᵀ)·X + C·(X·Xᵀ)²·X of an [Orthogonalize] is applied
// OrthogonalSteps times. Its coefficients are of Jordan and others 2024. PyTorch's Muon has the
// same.
const (
	OrthogonalSteps   = 5
	OrthogonalA       = 3.4445
	OrthogonalB       = -4.7750
	OrthogonalC       = 2.0315
	OrthogonalMinNorm = 1e-7 // The least number by which a matrix is divided.
)

// Orthogonalize replaces matrices of v by their directions, U·p(S)·Vᵀ of their singular values S
// over the norm of the matrix, where p is five steps of a Newton-Schulz iteration that moves S
// towards 1:
//
//	X ← X/max(|X|, 1e-7)        five times: X ← A·X + (B·P + C·P·P)·X with P = X·Xᵀ        X ← Scale·X
//
// P is Xᵀ·X, on the other side, if the matrix has more rows than columns. Products and sums are
// rounded as in the matrix products of the device. Other numbers of v keep their bits. Matrices do not
// overlap. (Methods with this step: Jordan and others 2024, Muon.)
func Orthogonalize(v Vector, matrices ...Orthogonal) Op {
	return Op{Kind: KindOrthogonalize, Out: [3]Vector{v}, Matrices: matrices}
}

// checkMatrices panics unless the matrices of an Orthogonalize are within their vector.
func (op *Op) checkMatrices() {
	n := op.Out[0].Len()
	for _, m := range op.Matrices {
		if min(m.Offset, m.Rows, m.Cols) < 0 || m.Offset+m.Len() > n {
			panic(fmt.Sprintf("device: Orthogonalize: the matrix %+v is not within a vector of length %d", m.Block, n))
		}
	}
}

// Within returns an elementwise operation on whole vectors, a Combine or an AdamW, that computes
// the coordinates of the ranges only, which ascend and do not overlap. The other coordinates keep
// their bits.
func (op Op) Within(ranges []Range) Op {
	op.Only = ranges
	return op
}

// checkRanges panics unless the operation can be limited to ranges, and its ranges are within its
// vectors.
func (op *Op) checkRanges() {
	n, last := op.Out[0].Len(), 0
	for _, r := range op.Only {
		if op.Kind != KindCombine && op.Kind != KindAdamW || r.From < last || r.From > r.To || r.To > n {
			panic(fmt.Sprintf("device: %s: the range %+v is not one of a Combine or an AdamW of length %d, "+
				"behind the one before", op.Kind, r, n))
		}
		last = r.To
	}
}
