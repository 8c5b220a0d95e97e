package devicetest

import (
	"fmt"

	"fspda/device"
	"fspda/internal/rng"
)

// twins is the table of the operations on vectors. Each row is computed by a device and by its
// definition, the loops of float64Device, and all vectors must have the same bits afterwards.
var twins = []twin{
	{"combine", 18, func(o *operands, c int) []device.Op {
		terms := o.terms(c % 9)
		if len(terms) > 0 {
			terms[0].A = []float64{1, 0.3}[c/9]
		}
		return one(device.Combine(o.vector(o.n), terms...))
	}},
	{"combine in place", 8, func(o *operands, c int) []device.Op {
		terms := o.terms(c + 1)
		at := o.n % len(terms)
		if c > 1 { // one vector twice, besides dst
			terms[(at+1)%len(terms)].V = terms[(at+2)%len(terms)].V
		}
		return one(device.Combine(terms[at].V, terms...))
	}},
	{"gather", selections, func(o *operands, c int) []device.Op {
		idx, k := o.selection(c)
		return one(device.Gather(o.vector(k), o.vector(o.n), idx))
	}},
	{"gather with gradient", selections, func(o *operands, c int) []device.Op {
		idx, k := o.selection(c)
		return one(device.GatherWithGradient(o.vector(k), o.vector(o.n), idx))
	}},
	{"add difference", 5 * selections, func(o *operands, c int) []device.Op {
		idx, k := o.selection(c / 5)
		return one(device.AddDiff(o.vector(k), o.vector(k), idx, o.terms(c%5)...))
	}},
	{"add differences", 6, func(o *operands, c int) []device.Op {
		k := []int{0, 1, 2, 6, 7, 13}[c]
		others, to, start := o.terms(k), o.terms(k%4), device.Term{}
		if k%2 == 1 { // start is also written
			start = device.Term{A: -0.7, V: to[0].V}
			others[0].V = to[0].V
		}
		return one(device.AddDiffs(start, o.vector(o.n), others, to...))
	}},
	{"scatter and add", 5, func(o *operands, c int) []device.Op {
		parts := make([]device.SparseTerm, []int{0, 1, 2, 7, 40}[c])
		for l := range parts {
			idx, k := o.selection(l + 1)
			parts[l] = device.SparseTerm{A: coefficients[l%len(coefficients)], V: o.vector(k), Idx: idx}
		}
		return one(device.ScatterAdd(o.vector(o.n), parts...))
	}},
	{"move a copy", 2 * selections, func(o *operands, c int) []device.Op {
		idx, k := o.selection(c / 2)
		w := []device.Vector{nil, o.vector(o.n)}[c%2]
		return one(device.MoveCopy(o.vector(k), o.vector(o.n), o.vector(o.n), w, idx))
	}},
	{"adamw", 4, func(o *operands, c int) []device.Op {
		a := device.Adam{Beta1: 0.9, Rest1: 1 - 0.9, Beta2: 0.999, Rest2: 1 - 0.999, Scale1: 1 / 0.19, Scale2: 31.6,
			Eps: 1e-8}
		if c%2 == 1 { // then most mean squares are limited
			a.Decay, a.Limit = 0.01, 0.1
		}
		m, v, x := o.vector(o.n), o.squares(o.n), o.vector(o.n)
		ops := one(device.AdamW(a, o.vector(o.n), m, v, x))
		if c/2 == 1 {
			ops = append(ops, device.AdamW(a, o.vector(o.n), m, v, x))
		}
		return ops
	}},
	{"combine and adamw within ranges", 6, func(o *operands, c int) []device.Op {
		a := device.Adam{Beta1: 0.9, Rest1: 1 - 0.9, Beta2: 0.999, Rest2: 1 - 0.999, Scale1: 1 / 0.19, Scale2: 31.6,
			Eps: 1e-8, Decay: 0.01}
		ranges := [][]device.Range{{}, {{From: 0, To: o.n}}, {{From: o.n / 3, To: o.n / 2},
			{From: o.n / 2, To: o.n}}}[c/2]
		g, m, v, x := o.vector(o.n), o.vector(o.n), o.squares(o.n), o.vector(o.n)
		terms := append(o.terms(c), device.Term{A: 0.3, V: g})
		return []device.Op{device.Combine(g, terms...).Within(ranges), device.AdamW(a, g, m, v, x).Within(ranges),
			device.Combine(m, o.terms(8)...).Within(ranges)}
	}},
	{"multiply", 12, products},
	{"neighbours", 12, neighbours},
}

// twin is a row of the table.
type twin struct {
	name  string
	cases int
	ops   func(o *operands, c int) []device.Op // the operations of case c
}

func twinChecks() (all []check) {
	for _, t := range twins {
		all = append(all, check{t.name, t.check})
	}
	return all
}

// check computes all cases at all lengths.
func (t twin) check(f *field) {
	definition := &field{TB: f.TB, d: float64Device{f.round}}
	for _, n := range f.lengths() {
		for c := range t.cases {
			got, want := &operands{field: f, n: n}, &operands{field: definition, n: n}
			f.d.Do(t.ops(got, c)...)
			definition.d.Do(t.ops(want, c)...)
			for i, v := range got.vectors {
				equal(f, fmt.Sprintf("case %d of %s with %d numbers: vector %d", c, t.name, n, i), f.read(v),
					numbers64(want.vectors[i]))
			}
		}
		f.done()
		definition.guards = nil
	}
}

// operands makes the operands of a row on one of the two devices. Both get the same numbers.
type operands struct {
	*field
	n       int
	vectors []device.Vector
}

// vector returns a vector of n numbers, some of them special.
func (o *operands) vector(n int) device.Vector {
	return o.keep(mixed(fmt.Sprint("v", len(o.vectors)), n))
}

// squares returns a vector of n numbers that are not negative.
func (o *operands) squares(n int) device.Vector {
	v := normal("squares", n)
	for i, x := range v {
		v[i] = x * x
	}
	return o.keep(v)
}

func (o *operands) keep(numbers []float32) device.Vector {
	v := o.field.vector(numbers)
	o.vectors = append(o.vectors, v)
	return v
}

// terms returns k new vectors with coefficients.
func (o *operands) terms(k int) []device.Term {
	terms := make([]device.Term, k)
	for j := range terms {
		terms[j] = device.Term{A: coefficients[(j+o.n+k)%len(coefficients)], V: o.vector(o.n)}
	}
	return terms
}

// selections is the number of selections of coordinates.
const selections = 6

// selection returns some of the coordinates: all, a third, none, the first, the last, or both ends.
func (o *operands) selection(c int) (idx device.Index, k int) {
	if o.n < 2 {
		c %= 3
	}
	last := uint32(o.n - 1)
	var at []uint32
	switch c % selections {
	case 0:
		return nil, o.n
	case 1:
		at = subset("mask", o.n, 3)
	case 3:
		at = []uint32{0}
	case 4:
		at = []uint32{last}
	case 5:
		at = []uint32{0, last}
	}
	return o.d.NewIndex(at, nil), len(at)
}

func one(op device.Op) []device.Op { return []device.Op{op} }

// neighbours returns operations that read what those before them wrote and overwrite what they
// read, most of them elementwise over vectors of one length.
func neighbours(o *operands, c int) (ops []device.Op) {
	s := rng.New(4, "neighbours", uint64(o.n), uint64(c))
	v := make([]device.Vector, 5)
	for i := range v {
		v[i] = o.vector(o.n)
	}
	terms := func(k int) []device.Term {
		all := make([]device.Term, k)
		for i := range all {
			all[i] = device.Term{A: coefficients[s.IntN(len(coefficients))], V: v[s.IntN(len(v))]}
		}
		return all
	}
	for range 2 + s.IntN(5) {
		p := []int32{0, 1, 2, 3, 4}
		s.Permute(p)
		a, b, x, y := v[p[0]], v[p[1]], v[p[2]], v[p[3]]
		to := []device.Term{{A: 0.6, V: x}, {A: -1.7, V: y}, {A: 1, V: b}}[:s.IntN(4)]
		idx, k := o.selection(s.IntN(selections))
		switch s.IntN(9) {
		default:
			ops = append(ops, device.Combine(a, terms(s.IntN(9))...))
		case 1:
			ops = append(ops, device.AdamW(device.Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01, Scale1: 2,
				Scale2: 3, Eps: 1e-8, Decay: 0.1}, a, b, x, y))
		case 2:
			ops = append(ops, device.AddDiffs(terms(1)[0], a, terms(s.IntN(8)), to...))
		case 3:
			ops = append(ops, device.AddDiff(a, b, nil, to...))
		case 4:
			ops = append(ops, device.MoveCopy(a, b, x, y, nil))
		case 5:
			ops = append(ops, device.Gather(a, b, nil))
		case 6:
			q := o.vector(k)
			ops = append(ops, device.Gather(q, a, idx), device.ScatterAdd(b, device.SparseTerm{A: 0.3, V: q, Idx: idx}))
		case 7:
			short := o.vector(o.n / 2)
			ops = append(ops, device.Combine(short, device.Term{A: 0.7, V: short}))
		}
	}
	return ops
}

// products returns a product of matrices that are parts of vectors, of any layout.
func products(o *operands, c int) []device.Op {
	s := rng.New(5, "products", uint64(o.n), uint64(c))
	size := func() int { return 1 + s.IntN(1+min(o.n, 70)) }
	m, n, k := size(), size(), s.IntN(2+min(o.n, 40))
	if long := o.n > 500; c < 3 { // a row, a column, and a product of a column and a row
		m, n, k = []int{1, size(), size()}[c], []int{size(), 1, size()}[c], []int{size(), size(), 1}[c]
		if long && c < 2 {
			k = o.n / 10
		} else if long {
			n = o.n / 10
		}
	}
	matrix := func(rows, cols, kind int) device.Matrix {
		offset := s.IntN(5)
		right := 1 + kind/2
		down := cols*right + s.IntN(3)
		w := device.View{Offset: offset, Rows: rows, Cols: cols, Down: down, Right: right}
		if kind%2 == 1 { // stored by columns
			w = device.View{Offset: offset, Rows: cols, Cols: rows, Down: rows*right + s.IntN(3), Right: right}.T()
		}
		return device.Matrix{V: o.vector(offset + rows*w.Down + cols*w.Right + s.IntN(4)), View: w}
	}
	alpha, beta := []float64{1, -0.3, 1}[c%3], []float64{0, 1, 0.7}[c/4]
	return one(device.Multiply(matrix(m, n, s.IntN(4)), alpha, matrix(m, k, s.IntN(4)), matrix(k, n, s.IntN(4)), beta))
}
