package device

import "fmt"

// Kind says which operation an [Op] is.
type Kind uint8

// The operations on vectors. The function of the same name makes each, and defines it.
const (
	KindCombine Kind = iota
	KindGather
	KindAddDiff
	KindAddDiffs
	KindScatterAdd
	KindMoveCopy
	KindAdamW
	KindDot
	KindMultiply
	KindOrthogonalize
)

// kindNames is indexed by Kind.
var kindNames = [...]string{"Combine", "Gather", "AddDiff", "AddDiffs", "ScatterAdd", "MoveCopy", "AdamW", "Dot",
	"Multiply", "Orthogonalize"}

func (k Kind) String() string { return kindNames[k] }

// Op is an operation on vectors of one device, as a value. [Combine], [Gather] and the other
// functions make one, and [Device.Do] computes it. Fields that a kind does not use are zero.
//
// Every coefficient is first rounded to the precision of the device. Differences, products and sums
// are then rounded one by one, from left to right.
type Op struct {
	Kind Kind

	Out   [3]Vector // The vectors that are written, besides To.
	In    [2]Vector // The vectors that are read, besides Start, Terms and Parts.
	Idx   Index     // The coordinates that the operation selects; nil selects all.
	Start Term      // The start of the sum of an AddDiffs.
	Terms []Term
	To    []Term // The vectors that are added to, with their coefficients.
	Parts []SparseTerm
	Adam  Adam
	Sum   *float64 // The result of a Dot.

	Product MatrixProduct // A Multiply.

	Matrices []Orthogonal // The matrices of an Orthogonalize.
	Only     []Range      // The ranges of an elementwise operation, see Within; nil: all coordinates.

	// WithGradient lets a device that computes the gradients of several agents together gather at
	// the same time.
	WithGradient bool
}

// Combine computes dst = Σ Aₖ·Vₖ. dst may be one of the Vₖ. Without terms, dst becomes zero.
func Combine(dst Vector, terms ...Term) Op {
	return Op{Kind: KindCombine, Out: [3]Vector{dst}, Terms: terms}
}

// Gather computes dst[j] = src[idx[j]]. dst has the length of idx, or of src if idx is nil.
func Gather(dst, src Vector, idx Index) Op {
	return Op{Kind: KindGather, Out: [3]Vector{dst}, In: [2]Vector{src}, Idx: idx}
}

// GatherWithGradient is [Gather] from a vector at which the next operation computes a gradient.
func GatherWithGradient(dst, src Vector, idx Index) Op {
	op := Gather(dst, src, idx)
	op.WithGradient = true
	return op
}

// AddDiff adds multiples of a difference: V[idx[j]] += A·(own[j] - other[j]) for each term of to.
// The two ends of an edge swap own and other, so they add exact negatives.
func AddDiff(own, other Vector, idx Index, to ...Term) Op {
	return Op{Kind: KindAddDiff, In: [2]Vector{own, other}, Idx: idx, To: to}
}

// AddDiffs adds multiples of a weighted sum of differences, over all coordinates: V += A·S for each
// term of to, where S = start + Σ Aₖ·(own - Vₖ) over others, and start is the product of its
// coefficient and vector, or zero without a vector. The operands of S may be among to: S uses their
// old values.
func AddDiffs(start Term, own Vector, others []Term, to ...Term) Op {
	return Op{Kind: KindAddDiffs, Start: start, In: [2]Vector{own}, Terms: others, To: to}
}

// ScatterAdd adds the parts to dst in order: dst[Idx[j]] += A·V[j]. No V may be dst.
func ScatterAdd(dst Vector, parts ...SparseTerm) Op {
	return Op{Kind: KindScatterAdd, Out: [3]Vector{dst}, Parts: parts}
}

// MoveCopy moves y to v, or to the sum of v and w unless w is nil, at selected coordinates, and
// writes the moves: q[j] = v[idx[j]] + w[idx[j]] - y[idx[j]], then y[idx[j]] += q[j]. The vectors
// are distinct.
func MoveCopy(q, y, v, w Vector, idx Index) Op {
	return Op{Kind: KindMoveCopy, Out: [3]Vector{q, y}, In: [2]Vector{v, w}, Idx: idx}
}

// AdamW replaces the gradient g by the direction of AdamW at x, and moves its averages m and v:
//
//	m ← Beta1·m + Rest1·g        v ← min(Beta2·v + Rest2·(g·g), Most())
//	g ← (Scale1·m)/(Scale2·√v + Eps) + Decay·x
//
// The four vectors are distinct and have one length.
func AdamW(a Adam, g, m, v, x Vector) Op {
	return Op{Kind: KindAdamW, Adam: a, Out: [3]Vector{g, m, v}, In: [2]Vector{x}}
}

// Dot writes Σ a[k]·b[k], accumulated in float64, to sum before [Device.Do] returns.
func Dot(sum *float64, a, b Vector) Op { return Op{Kind: KindDot, Sum: sum, In: [2]Vector{a, b}} }

// Multiply computes c = beta·c + alpha·a·b, element by element from left to right:
//
//	s ← beta·c[i,j], or 0 if beta is 0        s ← s + (alpha·a[i,k])·b[k,j] for k = 0, 1, …
//
// alpha is not rounded, but its product with a[i,k] is. No number of c is one of a or b.
func Multiply(c Matrix, alpha float64, a, b Matrix, beta float64) Op {
	return Op{Kind: KindMultiply, Out: [3]Vector{c.V}, In: [2]Vector{a.V, b.V},
		Product: MatrixProduct{C: c.View, A: a.View, B: b.View, Alpha: alpha, Beta: beta}}
}

// InnerProduct returns the result of a [Dot] alone.
func InnerProduct(d Device, a, b Vector) (sum float64) {
	d.Do(Dot(&sum, a, b))
	return sum
}

// Elementwise reports whether number i of each vector that the operation writes depends on numbers
// i alone, and returns the length of the vectors. A device may compute several such operations of
// one length part by part, in their order.
func (op *Op) Elementwise() (n int, ok bool) {
	if op.Only != nil {
		return 0, false
	}
	switch op.Kind {
	case KindCombine, KindAdamW:
		return op.Out[0].Len(), true
	case KindAddDiffs:
		return op.In[0].Len(), true
	case KindGather, KindAddDiff, KindMoveCopy:
		return op.In[0].Len(), op.Idx == nil
	}
	return 0, false
}

// Check panics unless the lengths of the vectors fit each other and the coordinates.
func (op *Op) Check() {
	if op.Only != nil {
		op.checkRanges()
	}
	switch op.Kind {
	case KindCombine:
		op.checkTerms("a term", op.Terms, op.Out[0].Len())
	case KindGather:
		op.checkLen("dst", op.Out[0], op.selected(op.In[0].Len()))
	case KindAddDiff:
		n := op.In[0].Len()
		op.checkLen("other", op.In[1], n)
		for _, t := range op.To {
			op.checkLen("own", op.In[0], op.selected(t.V.Len()))
		}
	case KindAddDiffs:
		n := op.In[0].Len()
		if op.Start.V != nil {
			op.checkLen("start", op.Start.V, n)
		}
		op.checkTerms("another", op.Terms, n)
		op.checkTerms("a term", op.To, n)
	case KindScatterAdd:
		n := op.Out[0].Len()
		for _, p := range op.Parts {
			op.checkLen("a part", p.V, op.within(p.Idx, n))
		}
	case KindMoveCopy:
		n := op.Out[1].Len()
		op.checkLen("v", op.In[0], n)
		if op.In[1] != nil {
			op.checkLen("w", op.In[1], n)
		}
		op.checkLen("q", op.Out[0], op.selected(n))
	case KindAdamW:
		n := op.Out[0].Len()
		op.checkLen("m", op.Out[1], n)
		op.checkLen("v", op.Out[2], n)
		op.checkLen("x", op.In[0], n)
	case KindDot:
		op.checkLen("b", op.In[1], op.In[0].Len())
	case KindMultiply:
		op.checkProduct()
	case KindOrthogonalize:
		op.checkMatrices()
	}
}

// checkTerms panics unless the vector of each term has length n.
func (op *Op) checkTerms(what string, terms []Term, n int) {
	for k := range terms {
		op.checkLen(what, terms[k].V, n)
	}
}

// checkLen panics unless v has length want.
func (op *Op) checkLen(what string, v Vector, want int) {
	if got := v.Len(); got != want {
		panic(fmt.Sprintf("device: %s: %s has length %d, want %d", op.Kind, what, got, want))
	}
}

// selected returns how many of n coordinates the operation selects. It panics if one is beyond
// them.
func (op *Op) selected(n int) int { return op.within(op.Idx, n) }

// within returns the length of idx, which nil makes n. It panics if a coordinate is not below n.
func (op *Op) within(idx Index, n int) int {
	if idx == nil {
		return n
	}
	if b := idx.Bound(); b > n {
		panic(fmt.Sprintf("device: %s: coordinate %d is outside of a vector of length %d", op.Kind, b-1, n))
	}
	return idx.Len()
}
