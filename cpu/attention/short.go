package attention

import (
	"math"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// Whole rows of scores, in bands of queries. To the last bit, for row i of a head:
//
//	s_j = Σ q_i·(k_j/√h), the factor in float64 and rounded, a chain of fused multiply-adds in
//	float32;  top = max s_j over j ≤ i
//	e_j = exp(s_j − top) in float32;  sum = Σ e_j as vec.ExpRows adds;  p_j = e_j·(1/sum), the
//	factor rounded to float32;  y = Σ p_j·v_j, a chain in ascending order;  lse = top + log sum
//
// The backward pass computes p_j again in the same way, then the chains
//
//	d_j = Σ dy·v_j,  g_j = p_j·(d_j − D) with D = Σ p_j·d_j, both in float64, rounded once,
//	dq = scale·Σ g_j·k_j,  dk_j = scale·Σ_i g_ij·q_i,  dv_j = Σ_i p_ij·dy_i
//
// D is dy·y, which the sum over the row has more exactly: it is d_1 for a window of one token.

// shortForwardFloats is the scratch memory of a worker.
func shortForwardFloats(s shape) int {
	return padded(s.width*padded(s.tokens)) + padded(bandRows*padded(s.tokens)) + 2*padded(s.tokens*padded(s.width))
}

func shortForward(o *kernel.Args, part, of int) {
	s := shapeOf(o.Dims)
	p := newProducts()
	defer p.release()
	from, to := kernel.SplitUnits(part, of, s.units(), 1)
	for unit := from; unit < to; unit++ {
		shortHead(o, s, p, unit, o.ScratchPart(part, of))
	}
}

func shortHead(o *kernel.Args, s shape, p *products, unit int, scratch []float32) {
	q, k, v := s.head(o.In[0], unit, 0, 3), s.head(o.In[0], unit, 1, 3), s.head(o.In[0], unit, 2, 3)
	y, lse := s.head(o.Out[0], unit, 0, 1), o.Out[1][unit*s.tokens:][:s.tokens]
	mem, wide, narrow := arena{scratch}, padded(s.tokens), s.tokens*padded(s.width)
	keys := p.scaledKeys(mem.take(s.width*wide), mem.take(narrow), wide, k, s.tokens, s.width)
	scores := mem.take(bandRows * wide)
	v = p.right(mem.take(narrow), v, s.tokens, s.width)
	for band := range bands(s.tokens) {
		i, rows := kernel.Split(band, bands(s.tokens), s.tokens)
		share := tile.RowMajor(scores, padded(i+rows))
		p.multiply(rows, i+rows, s.width, 1, q.From(i, 0), keys, 0, share)
		softmax(share, scores, i, rows, lse)
		p.multiply(rows, s.width, i+rows, 1, share, v, 0, y.From(i, 0))
	}
}

func keyScale(width int) float64 { return 1 / math.Sqrt(float64(width)) }

// scaled writes rows of the keys of a head times 1/√h to dst. Large scores thus lose fewer digits
// than by a factor at the end.
func scaled(dst []float32, k tile.View, rows, width int) tile.View {
	stride, scale := padded(width), [1]float64{keyScale(width)}
	for i := range rows {
		vec.TimesRows(dst[i*stride:][:width], k.Data[i*k.RowStride:][:width], scale[:], width)
	}
	return tile.RowMajor(dst, stride)
}

// softmax writes the softmax of the scores of a band of rows, from row i on, to dst, which may have
// the same memory, and lse if that is not nil. The rows have i+rows scores each, of which the last
// ones belong to later tokens and become zero. They lie whole vectors apart, since parts of vectors
// take long to write.
func softmax(dst tile.View, scores []float32, i, rows int, lse []float32) {
	var top, scale [bandRows]float32
	var sum [bandRows]float64
	n := padded(i + rows)
	scores = scores[:rows*n]
	for r := range rows {
		for j := i + r + 1; j < n; j++ {
			scores[r*n+j] = minusInf
		}
	}
	vec.RowMaxima(top[:rows], scores, n)
	vec.ExpRows(scores, sum[:rows], scores, top[:rows], n)
	for r, v := range sum[:rows] {
		scale[r] = float32(1 / v)
		if lse != nil {
			lse[i+r] = float32(float64(top[r]) + vec.Log(v))
		}
	}
	vec.ScaleRows(dst.Data, scores, scale[:rows], n, dst.RowStride)
}

// shortBackwardFloats is the scratch memory of a worker.
func shortBackwardFloats(s shape) int {
	wide := padded(s.tokens)
	return 2*padded(s.width*wide) + 2*padded(s.tokens*wide) + padded(bandRows*wide) +
		4*padded(s.tokens*padded(s.width))
}

func shortBackward(o *kernel.Args, part, of int) {
	s := shapeOf(o.Dims)
	p := newProducts()
	defer p.release()
	from, to := kernel.SplitUnits(part, of, s.units(), 1)
	for unit := from; unit < to; unit++ {
		shortHeadGrad(o, s, p, unit, o.ScratchPart(part, of))
	}
}

func shortHeadGrad(o *kernel.Args, s shape, p *products, unit int, scratch []float32) {
	q, k, v := s.head(o.In[0], unit, 0, 3), s.head(o.In[0], unit, 1, 3), s.head(o.In[0], unit, 2, 3)
	dy := s.head(o.In[3], unit, 0, 1)
	dq, dk, dv := s.head(o.Out[0], unit, 0, 3), s.head(o.Out[0], unit, 1, 3), s.head(o.Out[0], unit, 2, 3)
	mem, wide, narrow := arena{scratch}, padded(s.tokens), s.tokens*padded(s.width)
	keys := p.scaledKeys(mem.take(s.width*wide), mem.take(narrow), wide, k, s.tokens, s.width)
	values := p.transposed(mem.take(s.width*wide), wide, v, s.tokens, s.width)
	shares, slopes := tile.RowMajor(mem.take(s.tokens*wide), wide), tile.RowMajor(mem.take(s.tokens*wide), wide)
	right := func(x tile.View) tile.View { return p.right(mem.take(narrow), x, s.tokens, s.width) }
	rightK, rightQ, rightDY := right(k), right(q), right(dy)
	scores := mem.take(bandRows * wide)
	count := bands(s.tokens)
	for band := range count {
		i, rows := kernel.Split(band, count, s.tokens)
		n, share, slope := i+rows, shares.From(i, 0), slopes.From(i, 0)
		block := tile.RowMajor(scores, padded(n))
		p.multiply(rows, n, s.width, 1, q.From(i, 0), keys, 0, block)
		softmax(share, scores, i, rows, nil)
		p.multiply(rows, n, s.width, 1, dy.From(i, 0), values, 0, block)
		softmaxGrad(slope, share, scores, i, rows)
		p.multiply(rows, s.width, n, s.scale(), slope, rightK, 0, dq.From(i, 0))
	}
	for band := range count {
		j, rows := kernel.Split(band, count, s.tokens)
		later := s.tokens - j
		p.multiply(rows, s.width, later, 1, shares.From(j, j).T(), rightDY.From(j, 0), 0, dv.From(j, 0))
		p.multiply(rows, s.width, later, s.scale(), slopes.From(j, j).T(), rightQ.From(j, 0), 0, dk.From(j, 0))
	}
}

// softmaxGrad writes the gradients by the scores of a band of rows, share·(gradient − mean), to
// slope, zero for later tokens. gradient holds those by the shares, in rows as softmax has them.
func softmaxGrad(slope, share tile.View, gradient []float32, i, rows int) {
	var mean [bandRows]float64
	n := padded(i + rows)
	for r := range rows {
		seen := i + r + 1
		mean[r] = vec.Dot(share.Data[r*share.RowStride:][:seen], gradient[r*n:][:seen])
	}
	vec.SlopeRows(slope.Data, share.Data, gradient, mean[:rows], n, slope.RowStride)
	for r := range rows {
		clear(slope.Data[r*slope.RowStride:][i+r+1 : n])
	}
}
