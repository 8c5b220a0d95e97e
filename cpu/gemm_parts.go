package cpu

// gemmCall is the arguments of gemmThen: see there.
type gemmCall struct {
	transA, transB bool
	m, n, k        int
	alpha          float32
	a              []float32
	lda            int
	b              []float32
	ldb            int
	beta           float32
	c              []float32
	ldc            int
	then           epilogue

	codedA, codedB coded // in place of a or b, where one has bytes
}

// run computes the product on the calling goroutine.
func (g *gemmCall) run() {
	if g.codedA.bytes != nil || g.codedB.bytes != nil {
		g.runBytes()
		return
	}
	gemmThen(g.transA, g.transB, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c, g.ldc, g.then)
}

// runBytes is run where one factor, not transposed, is of bytes, and beta is 0.
func (g *gemmCall) runBytes() {
	if g.m == 0 || g.n == 0 {
		return
	}
	c := view{g.c, g.ldc, 1}
	c.check("C", g.m, g.n)
	g.then.check(g.m, g.n, g.ldc)
	if g.codedA.bytes != nil {
		g.codedA.check("A", g.m, g.k)
		b := op(g.transB, g.b, g.ldb)
		b.check("B", g.k, g.n)
		productOfBytes(g.m, g.n, g.k, g.alpha, g.codedA, b, c, g.then)
		return
	}
	a := op(g.transA, g.a, g.lda)
	a.check("A", g.m, g.k)
	g.codedB.check("B", g.k, g.n)
	productByBytes(g.m, g.n, g.k, g.alpha, a, g.codedB, c, g.then)
}

// op is a factor that is stored in rows ld apart, transposed or not.
func op(trans bool, data []float32, ld int) view {
	if trans {
		return view{data, 1, ld}
	}
	return view{data, ld, 1}
}

// leastProducts is how many multiply-adds are worth another goroutine: some microseconds of them.
const leastProducts = 1 << 20

// parts is how many pieces of C to compute side by side, given so many goroutines. Each element is
// what it is wherever its piece ends.
func (g *gemmCall) parts(threads int) int {
	work := float64(g.m) * float64(g.n) * float64(g.k)
	return max(1, min(threads, int(work/leastProducts), max(g.m, g.n)))
}

// part is a piece of the product: some of the rows of C, or of the columns where these are more, in
// whole vectors.
func (g *gemmCall) part(part, of int) gemmCall {
	p := *g
	if g.m >= g.n {
		from, to := portion(part, of, g.m, 1)
		p.m = to - from
		p.a = sub(g.a, from, g.transA, g.lda)
		p.codedA = g.codedA.part(from, 0)
		p.c = sub(g.c, from, false, g.ldc)
		p.then.with = g.then.rows(from, g.ldc)
		return p
	}
	from, to := portion(part, of, g.n, 32)
	p.n = to - from
	p.b = sub(g.b, from, !g.transB, g.ldb)
	p.codedB = g.codedB.part(0, from)
	p.c = sub(g.c, from, true, g.ldc)
	p.then.with = g.then.cols(from)
	return p
}

// sub is a matrix from row i on, or from column i on where it is stored by columns.
func sub(v []float32, i int, trans bool, ld int) []float32 {
	if !trans {
		i *= ld
	}
	return v[min(i, len(v)):]
}
