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
}

// run computes the product on the calling goroutine.
func (g *gemmCall) run() {
	gemmThen(g.transA, g.transB, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c, g.ldc, g.then)
}

// leastProducts is how many multiply-adds are worth another goroutine: some microseconds of them.
const leastProducts = 1 << 20

// parts is how many pieces of C to compute side by side, given so many goroutines. Each element is what it is wherever its piece ends.
func (g *gemmCall) parts(threads int) int {
	work := float64(g.m) * float64(g.n) * float64(g.k)
	return max(1, min(threads, int(work/leastProducts), max(g.m, g.n)))
}

// part is a piece of the product: some of the rows of C, or of the columns where these are more, in whole vectors.
func (g *gemmCall) part(part, of int) gemmCall {
	p := *g
	if g.m >= g.n {
		from, to := portion(part, of, g.m, 1)
		p.m = to - from
		p.a = sub(g.a, from, g.transA, g.lda)
		p.c = sub(g.c, from, false, g.ldc)
		p.then.with = g.then.rows(from, g.ldc)
		return p
	}
	from, to := portion(part, of, g.n, 32)
	p.n = to - from
	p.b = sub(g.b, from, !g.transB, g.ldb)
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

// product computes g in parts.
func (o *operands) product(g gemmCall) {
	o.gemm = g
	o.parallel(g.parts(o.threads()), gemmPart)
	o.gemm = gemmCall{} // what is done keeps nothing alive
}

func gemmPart(o *operands, part, of int) {
	p := o.gemm.part(part, of)
	p.run()
}
