package vec

import (
	"unsafe"

	"fspda/cpu/isa"
)

// The functions below choose between a loop in Go, which is the definition, and one in assembly.
// They divide long vectors into blocks: a block takes microseconds, and the scheduler cannot
// preempt assembly.

// pointer returns the address of v.
func pointer(v []float32) *float32 { return unsafe.SliceData(v) }

// AddRow adds bias to dst, a row of as many columns.
func AddRow(dst, bias []float32) { adds(dst, dst, bias[:len(dst)], false) }

// Scale computes dst = a·x.
func Scale(dst []float32, a float32, x []float32) { times(dst, a, x, false) }

// adds writes a + b to dst. With stream it uses non-temporal stores; dst must then be neither a nor
// b.
func adds(dst, a, b []float32, stream bool) { addLoops.run(dst, a, b, stream) }

// ReLUs writes max(x, 0) to dst; NaN stays NaN. stream is as in adds.
func ReLUs(dst, x []float32, stream bool) { reluLoops.run(dst, x, x, stream) }

// ReLUGrads writes dy if y > 0, else 0, to dst. stream is as in adds.
func ReLUGrads(dst, y, dy []float32, stream bool) { reluGradLoops.run(dst, y, dy, stream) }

// SigmoidGrads writes dy·y·(1-y) to dst. stream is as in adds.
func SigmoidGrads(dst, y, dy []float32, stream bool) { sigmoidGradLoops.run(dst, y, dy, stream) }

// Sigmoids writes 1/(1+exp(-x)) to dst.
func Sigmoids(dst, x []float32) { sigmoidLoops.run(dst, x, x, false) }

// Swishes writes x·σ(v·x) to dst, σ computed in float64 and rounded to float32, as is each product.
func Swishes(dst, x, v []float32) { swishLoops.run(dst, x, v, false) }

// SwishGrads writes y = x·σ(v·x), its derivative by v, dv = x·(x·w), and its gradient by x, dx =
// dy·(s + t·w), with t = v·x, s = σ(t) and w = σ(t)·σ(−t). s and w are computed in float64 and
// rounded to float32, as is each other result.
func SwishGrads(y, dv, dx, x, v, dy []float32) {
	if !isa.Assembly() {
		swishGradsGo(y, dv, dx, x, v, dy)
		return
	}
	dv, dx, x, v, dy = dv[:len(y)], dx[:len(y)], x[:len(y)], v[:len(y)], dy[:len(y)]
	for len(y) > 0 {
		n := min(vecBlock, len(y))
		swishGradsAsm(pointer(y), pointer(dv), pointer(dx), pointer(x), pointer(v), pointer(dy), n)
		y, dv, dx, x, v, dy = y[n:], dv[n:], dx[n:], x[n:], v[n:], dy[n:]
	}
}

// gelus writes GELU of x, whose form has the curve, to dst.
func gelus(c *curve, dst, x []float32) {
	if !isa.Assembly() {
		gelusGo(c, dst, x)
		return
	}
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(vecBlock, len(dst))
		gelusAsm(pointer(dst), pointer(x), &c.center[0], n)
		dst, x = dst[n:], x[n:]
	}
}

func geluGrads(c *curve, dst, x, dy []float32) {
	if !isa.Assembly() {
		geluGradsGo(c, dst, x, dy)
		return
	}
	x, dy = x[:len(dst)], dy[:len(dst)]
	for len(dst) > 0 {
		n := min(vecBlock, len(dst))
		geluGradsAsm(pointer(dst), pointer(x), pointer(dy), &c.center[0], n)
		dst, x, dy = dst[n:], x[n:], dy[n:]
	}
}

// combine writes c to dst, which may be one of its vectors. With stream it uses non-temporal
// stores; dst must then be none of them. The assembly has no special case for a factor of 1:
// multiplying by it changes nothing, and costs nothing compared with the memory.
func combine(dst []float32, c *combination, stream bool) {
	if !isa.Assembly() {
		combineGo(dst, c)
		return
	}
	v := c.pointers(len(dst))
	begin, end := 0, len(dst)
	if stream {
		begin, end = wholeLines(dst)
		combineCached(dst, &v, c, 0, begin)
		for i := begin; i < end; i += vecBlock {
			combineStreamAsm(pointer(dst), &v[0], &c.a[0], c.terms, i, min(i+vecBlock, end))
		}
		begin, end = end, len(dst)
	}
	combineCached(dst, &v, c, begin, end)
}

func combineCached(dst []float32, v *[maxTerms]*float32, c *combination, begin, end int) {
	for i := begin; i < end; i += vecBlock {
		combineAsm(pointer(dst), &v[0], &c.a[0], c.terms, i, min(i+vecBlock, end))
	}
}

// combineAhead is combine, and prefetches the next block of each vector.
func combineAhead(dst []float32, c *combination) {
	if !isa.Assembly() {
		combineGo(dst, c)
		return
	}
	v := c.pointers(len(dst))
	combineAheadAsm(pointer(dst), &v[0], &c.a[0], c.terms, 0, len(dst))
}

// pointers returns the addresses of the terms' vectors, of n numbers each.
func (c *combination) pointers(n int) (v [maxTerms]*float32) {
	for k := range c.terms {
		v[k] = pointer(c.v[k][:n])
	}
	return v
}

func dotBlock(x, y []float32) float64 {
	y = y[:len(x)]
	switch {
	case !isa.Assembly():
		return dotGo(x, y)
	case pointer(x) == pointer(y):
		return squaresAsm(pointer(x), len(x))
	}
	return dotAsm(pointer(x), pointer(y), len(x))
}

func rowMaxima(tops, x []float32, n int) {
	x = x[:len(tops)*n]
	switch {
	case len(x) == 0:
	case isa.Assembly():
		rowMaximaAsm(pointer(tops), pointer(x), n, len(tops))
	default:
		rowMaximaGo(tops, x, n)
	}
}

func expRows(dst []float32, sums []float64, x, tops []float32, n int) {
	dst, x, tops = dst[:len(sums)*n], x[:len(sums)*n], tops[:len(sums)]
	switch {
	case len(x) == 0:
	case isa.Assembly():
		expRowsAsm(pointer(dst), &sums[0], pointer(x), pointer(tops), n, len(sums))
	default:
		expRowsGo(dst, sums, x, tops, n)
	}
}

func floatExpRows(dst []float32, sums []float64, x, tops []float32, n int) {
	dst, x, tops = dst[:len(sums)*n], x[:len(sums)*n], tops[:len(sums)]
	switch {
	case len(x) == 0:
	case isa.Assembly():
		floatExpRowsAsm(pointer(dst), &sums[0], pointer(x), pointer(tops), n, len(sums))
	default:
		floatExpRowsGo(dst, sums, x, tops, n)
	}
}

func scaleRows(dst, x, scales []float32, n, stride int) {
	x = x[:len(scales)*n]
	if len(x) == 0 {
		return
	}
	dst = dst[:(len(scales)-1)*stride+n]
	if isa.Assembly() {
		scaleRowsAsm(pointer(dst), pointer(x), pointer(scales), n, len(scales), stride)
		return
	}
	scaleRowsGo(dst, x, scales, n, stride)
}

func timesRows(dst, src []float32, scales []float64, n int) {
	dst, src = dst[:len(scales)*n], src[:len(scales)*n]
	switch {
	case len(dst) == 0:
	case isa.Assembly():
		timesRowsAsm(pointer(dst), pointer(src), &scales[0], n, len(scales))
	default:
		timesRowsGo(dst, src, scales, n)
	}
}

func slopeRows(dst, p, d []float32, means []float64, n, stride int) {
	d = d[:len(means)*n]
	if len(d) == 0 {
		return
	}
	all := (len(means)-1)*stride + n
	dst, p = dst[:all], p[:all]
	if isa.Assembly() {
		slopeRowsAsm(pointer(dst), pointer(p), pointer(d), &means[0], n, len(means), stride)
		return
	}
	slopeRowsGo(dst, p, d, means, n, stride)
}

func addColumns(sums *[colBlock]float64, a []float32, rows, stride, columns int) {
	if !isa.Assembly() {
		addColumnsGo(sums, a, rows, stride, columns)
		return
	}
	_ = a[(rows-1)*stride+columns-1]
	wide := wideSums * isa.Active.Lanes()
	for j := 0; j < columns; {
		if from, s := pointer(a[j:]), &sums[j]; columns-j >= wide {
			columnSumsWideAsm(s, from, rows, stride)
			j += wide
		} else {
			columnSumsNarrowAsm(s, from, rows, stride, min(rowSums, columns-j))
			j += rowSums
		}
	}
}

func addDiffAll1(p, q []float32, a float32, v []float32) {
	if !isa.Assembly() {
		addDiffAll1Go(p, q, a, v)
		return
	}
	q, v = q[:len(p)], v[:len(p)]
	for len(p) > 0 {
		n := min(vecBlock, len(p))
		addDiff1Asm(pointer(v), pointer(p), pointer(q), n, a)
		p, q, v = p[n:], q[n:], v[n:]
	}
}

func addDiffAll2(p, q []float32, a float32, v []float32, b float32, w []float32) {
	if !isa.Assembly() {
		addDiffAll2Go(p, q, a, v, b, w)
		return
	}
	q, v, w = q[:len(p)], v[:len(p)], w[:len(p)]
	for len(p) > 0 {
		n := min(vecBlock, len(p))
		addDiff2Asm(pointer(v), pointer(w), pointer(p), pointer(q), n, a, b)
		p, q, v, w = p[n:], q[n:], v[n:], w[n:]
	}
}

func adamW(a *adam, g, m, v, x []float32) {
	if !isa.Assembly() {
		adamWGo(a, g, m, v, x)
		return
	}
	m, v, x = m[:len(g)], v[:len(g)], x[:len(g)]
	for len(g) > 0 {
		n := min(vecBlock, len(g))
		adamWAsm(pointer(g), pointer(m), pointer(v), pointer(x), n, a.beta1, a.rest1, a.beta2, a.rest2, a.scale1,
			a.scale2, a.eps, a.decay, a.most)
		g, m, v, x = g[n:], m[n:], v[n:], x[n:]
	}
}

// sumDiffs is sumDiffsGo, for at most vecBlock numbers. So are the functions below.
func sumDiffs(sum []float32, s *differences) {
	if !isa.Assembly() || s.others.terms == 0 {
		sumDiffsGo(sum, s)
		return
	}
	v := s.pointers(len(sum))
	sumDiffsAsm(pointer(sum), pointer(s.start), pointer(s.own), &v[0], &s.others.a[0], s.others.terms, len(sum),
		s.scale)
}

func addDiffs1(x []float32, b float32, s *differences) {
	if !isa.Assembly() || s.others.terms == 0 {
		addDiffs1Go(x, b, s)
		return
	}
	v := s.pointers(len(x))
	addDiffs1Asm(pointer(x), pointer(s.start), pointer(s.own), &v[0], &s.others.a[0], s.others.terms, len(x),
		s.scale, b)
}

func addDiffs2(x []float32, b float32, y []float32, c float32, s *differences) {
	if !isa.Assembly() || s.others.terms == 0 {
		addDiffs2Go(x, b, y, c, s)
		return
	}
	v := s.pointers(len(x))
	addDiffs2Asm(pointer(x), pointer(y[:len(x)]), pointer(s.start), pointer(s.own), &v[0], &s.others.a[0],
		s.others.terms, len(x), s.scale, b, c)
}

// pointers returns the addresses of the others' vectors, of n numbers.
func (s *differences) pointers(n int) [maxTerms]*float32 {
	_, _ = s.start[:n], s.own[:n]
	return s.others.pointers(n)
}

func (m *diffCombination) run(d []float32) {
	if !isa.Assembly() {
		m.runGo(d)
		return
	}
	var v [2*maxTerms + maxTargets]*float32
	var a [len(v)]float32
	all := 0
	for _, c := range []*combination{&m.base, &m.others, &m.targets} {
		for k := range c.terms {
			v[all], a[all] = pointer(c.v[k][:len(d)]), c.a[k]
			all++
		}
	}
	others := m.base.terms + m.others.terms
	for i := 0; i < len(d); i += vecBlock {
		combineDiffsAsm(pointer(d), pointer(m.start), pointer(m.own), &v[0], &a[0], m.base.terms, others, all, i,
			min(i+vecBlock, len(d)), m.scale, m.factor)
	}
}

// bandwidth is bandwidthGo with a prefetch distance. n is a multiple of bandwidthStep.
func bandwidth(v [][]float32, reads, n, ahead int) {
	if !isa.Assembly() {
		bandwidthGo(v, reads, n)
		return
	}
	heads := make([]*float32, len(v))
	for k := range v {
		heads[k] = pointer(v[k][:n])
	}
	for i := 0; i < n; i += vecBlock {
		bandwidthAsm(&heads[0], reads, len(v), i, min(i+vecBlock, n), ahead)
	}
}
