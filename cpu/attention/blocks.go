package attention

import (
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// Blocks of keys in ascending order, for windows longer than Short. A row has a running maximum m
// and sum l; for a block of scores s_j, computed as in short.go,
//
//	m' = max(m, max s_j),  f = exp(m − m'),  e_j = exp(s_j − m'),  l' = l·f + Σ e_j,
//	o' = f·o, rounded,  then o' + Σ e_j·v_j, a chain that is added
//
// and in the end y = o·(1/l), lse = m + log l. l is in float64. The backward pass has p_j = exp(s_j
// − lse), and adds the contribution of each block to dq in ascending order of keys, to dk and dv in
// ascending order of queries.

// rowState is the running maximum and sum of each row.
type rowState struct {
	top []float32
	sum []float64
}

var rowStates = sync.Pool{New: func() any { return new(rowState) }}

// reset sizes the state for n rows without scores.
func (w *rowState) reset(n int) {
	if len(w.top) < n {
		w.top, w.sum = make([]float32, n), make([]float64, n)
	}
	for i := range n {
		w.top[i], w.sum[i] = minusInf, 0
	}
}

// blocksForwardFloats is the scratch memory of a worker.
func blocksForwardFloats(s shape) int {
	return padded(s.width*blockKeys) + padded(blockKeys*blockKeys) + 2*padded(blockKeys*padded(s.width))
}

func blocksForward(o *kernel.Args, part, of int) {
	s := shapeOf(o.Dims)
	p, w := newProducts(), rowStates.Get().(*rowState)
	defer p.release()
	defer rowStates.Put(w)
	from, to := kernel.SplitUnits(part, of, s.units(), 1)
	for unit := from; unit < to; unit++ {
		blocksHead(o, s, p, w, unit, o.ScratchPart(part, of))
	}
}

func blocksHead(o *kernel.Args, s shape, p *products, w *rowState, unit int, scratch []float32) {
	q, k, v := s.head(o.In[0], unit, 0, 3), s.head(o.In[0], unit, 1, 3), s.head(o.In[0], unit, 2, 3)
	y, lse := s.head(o.Out[0], unit, 0, 1), o.Out[1][unit*s.tokens:][:s.tokens]
	mem := arena{scratch}
	keyScratch := mem.take(s.width * blockKeys)
	scores := tile.RowMajor(mem.take(blockKeys*blockKeys), blockKeys)
	valueScratch, scaledScratch := mem.take(blockKeys*padded(s.width)), mem.take(blockKeys*padded(s.width))
	w.reset(s.tokens)
	for j := 0; j < s.tokens; j += blockKeys {
		n := min(blockKeys, s.tokens-j)
		keys := p.scaledKeys(keyScratch, scaledScratch, blockKeys, k.From(j, 0), n, s.width)
		values := p.right(valueScratch, v.From(j, 0), n, s.width)
		beta := float32(1)
		if j == 0 {
			beta = 0
		}
		for i := j; i < s.tokens; i += blockKeys {
			rows := min(blockKeys, s.tokens-i)
			p.multiply(rows, n, s.width, 1, q.From(i, 0), keys, 0, scores)
			for r := range rows {
				row := y.Data[(i+r)*y.RowStride:][:s.width]
				w.add(i+r, scores.Data[r*blockKeys:][:n], min(n, i+r-j+1), row, j > 0)
			}
			p.multiply(rows, s.width, n, 1, scores, values, beta, y.From(i, 0))
		}
	}
	for i := range s.tokens {
		row, scale := y.Data[i*y.RowStride:][:s.width], [1]float64{1 / w.sum[i]}
		vec.TimesRows(row, row, scale[:], s.width)
		lse[i] = float32(float64(w.top[i]) + vec.Log(w.sum[i]))
	}
}

// add takes n scores into row i, replaces them by their exponentials and the others by zero, and
// scales the earlier sums of the row.
func (w *rowState) add(i int, scores []float32, n int, row []float32, started bool) {
	var top [1]float32
	var sum [1]float64
	vec.RowMaxima(top[:], scores[:n], n)
	before := w.top[i]
	w.top[i] = max(before, top[0])
	vec.ExpRows(scores[:n], sum[:], scores[:n], w.top[i:i+1], n)
	clear(scores[n:])
	if !started {
		w.sum[i] = sum[0]
		return
	}
	f := vec.Exp(float64(before) - float64(w.top[i]))
	w.sum[i] = float64(w.sum[i]*f) + sum[0]
	scale := [1]float64{f}
	vec.TimesRows(row, row, scale[:], len(row))
}

// blocksBackwardFloats is the scratch memory of a worker.
func blocksBackwardFloats(s shape) int {
	return 2*padded(s.width*blockKeys) + 2*padded(blockKeys*blockKeys) + 4*padded(blockKeys*padded(s.width)) +
		padded(s.tokens)
}

func blocksBackward(o *kernel.Args, part, of int) {
	s := shapeOf(o.Dims)
	p := newProducts()
	defer p.release()
	from, to := kernel.SplitUnits(part, of, s.units(), 1)
	for unit := from; unit < to; unit++ {
		h := newHeadGrad(o, s, p, unit, o.ScratchPart(part, of))
		for j := 0; j < s.tokens; j += blockKeys {
			h.keys(j)
		}
	}
}

// headGrad is the backward pass of one head.
type headGrad struct {
	shape
	p                        *products
	q, k, v, dy, dq, dk, dv  tile.View
	lse, means               []float32
	shares, slopes           tile.View
	keysT, valuesT, keyBlock tile.View
	scratch                  struct{ keys, values, scaled, k, q, dy []float32 }
}

func newHeadGrad(o *kernel.Args, s shape, p *products, unit int, scratch []float32) *headGrad {
	y := s.head(o.In[1], unit, 0, 1)
	h := &headGrad{shape: s, p: p, q: s.head(o.In[0], unit, 0, 3), k: s.head(o.In[0], unit, 1, 3),
		v: s.head(o.In[0], unit, 2, 3), dy: s.head(o.In[3], unit, 0, 1), dq: s.head(o.Out[0], unit, 0, 3),
		dk: s.head(o.Out[0], unit, 1, 3), dv: s.head(o.Out[0], unit, 2, 3), lse: o.In[2][unit*s.tokens:][:s.tokens]}
	mem := arena{scratch}
	h.scratch.keys, h.scratch.values = mem.take(s.width*blockKeys), mem.take(s.width*blockKeys)
	h.shares = tile.RowMajor(mem.take(blockKeys*blockKeys), blockKeys)
	h.slopes = tile.RowMajor(mem.take(blockKeys*blockKeys), blockKeys)
	narrow := blockKeys * padded(s.width)
	h.scratch.k, h.scratch.q, h.scratch.dy = mem.take(narrow), mem.take(narrow), mem.take(narrow)
	h.scratch.scaled, h.means = mem.take(narrow), mem.take(s.tokens)
	for i := range h.means {
		h.means[i] = float32(vec.Dot(y.Data[i*y.RowStride:][:s.width], h.dy.Data[i*h.dy.RowStride:][:s.width]))
	}
	return h
}

// keys adds the contribution of the block of keys that begins at j.
func (h *headGrad) keys(j int) {
	n := min(blockKeys, h.tokens-j)
	h.keysT = h.p.scaledKeys(h.scratch.keys, h.scratch.scaled, blockKeys, h.k.From(j, 0), n, h.width)
	h.valuesT = h.p.transposed(h.scratch.values, blockKeys, h.v.From(j, 0), n, h.width)
	h.keyBlock = h.p.right(h.scratch.k, h.k.From(j, 0), n, h.width)
	for i := j; i < h.tokens; i += blockKeys {
		h.queries(i, j, min(blockKeys, h.tokens-i), n)
	}
}

// queries adds the contribution of a block of queries and a block of keys.
func (h *headGrad) queries(i, j, rows, n int) {
	p := h.p
	p.multiply(rows, n, h.width, 1, h.q.From(i, 0), h.keysT, 0, h.shares)
	p.multiply(rows, n, h.width, 1, h.dy.From(i, 0), h.valuesT, 0, h.slopes)
	var sum [1]float64
	for r := range rows {
		seen, share := min(n, i+r-j+1), h.shares.Data[r*blockKeys:][:n]
		vec.ExpRows(share[:seen], sum[:], share[:seen], h.lse[i+r:i+r+1], seen)
		clear(share[seen:])
		slope, mean := h.slopes.Data[r*blockKeys:][:n], [1]float64{float64(h.means[i+r])}
		vec.SlopeRows(slope[:seen], share, slope, mean[:], seen, seen)
		clear(slope[seen:])
	}
	later, earlier := float32(1), float32(1)
	if i == j {
		later = 0
	}
	if j == 0 {
		earlier = 0
	}
	dy := p.right(h.scratch.dy, h.dy.From(i, 0), rows, h.width)
	q := p.right(h.scratch.q, h.q.From(i, 0), rows, h.width)
	p.multiply(n, h.width, rows, 1, h.shares.T(), dy, later, h.dv.From(j, 0))
	p.multiply(n, h.width, rows, h.scale(), h.slopes.T(), q, later, h.dk.From(j, 0))
	p.multiply(rows, h.width, n, h.scale(), h.slopes, h.keyBlock, earlier, h.dq.From(i, 0))
}
