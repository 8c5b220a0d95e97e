package norm

import (
	"math"
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// Layer normalization of a matrix of m rows (tokens) and c columns. To the last bit, for every row,
// in float64, where Σ adds number j to partial sum j mod 16, in the backward pass mod 8, and the
// partial sums as a tree:
//
// Forward. mean = Σ x/c, d = x − mean, rstd = 1/sqrt(Σ d²/c + eps), y = (d·rstd)·gamma + beta; the
// outputs are rounded once. Two passes over a row in the first-level
// cache keep the digits of the variance whatever the mean is.
//
// Backward. d = x − mean and rstd are of the rounded outputs, g = gamma·dy. δ = Σ d/c is
// the rounding error of the mean. With A = Σ g/c, B = (Σ g·d/c − δ·A)·rstd, x̂ = (d−δ)·rstd,
// dx = ((g − A) − x̂·B)·rstd, rounded once. dgamma = Σ dy·x̂ and dbeta = Σ dy over the rows of a
// block, in order, and then over the blocks.
//
// RMS norm is the same with mean = 0: rrms = 1/sqrt(Σ x²/c + eps), y = (x·rrms)·gamma;
// B = Σ g·x/c·rrms, dx = rrms·(g − x·rrms·B).

// LayerKernels normalize rows.
var LayerKernels = kernel.Table{
	device.LayerNorm:             {Run: layerNorm},
	device.LayerNormPlain:        {Run: layerNorm},
	device.AddLayerNorm:          {Run: addLayerNorm},
	device.AddLayerNormPlain:     {Run: addLayerNorm},
	device.LayerNormGrad:         {Run: layerNormGrad},
	device.LayerNormPlainGrad:    {Run: layerNormGrad},
	device.LayerNormGradAdd:      {Run: layerNormGrad},
	device.LayerNormPlainGradAdd: {Run: layerNormGrad},
	device.RMSNorm:               {Run: rmsNorm},
	device.RMSNormGrad:           {Run: layerNormGrad},
}

// layerRows is how many rows a block of dgamma and dbeta has. It is part of the definition.
const layerRows = 64

// leastRows is how many numbers are worth another goroutine.
const leastRows = 32 << 10

// rowParts returns into how many parts to divide the rows of a call.
func rowParts(o *kernel.Args) int {
	m, c := o.Dims[0], o.Dims[1]
	return max(1, min(o.Threads(), m*c/leastRows))
}

// wideFloats is the size of a block of rows of float64, which stays in the first-level cache.
const wideFloats = 1 << 10

// wideRows are the buffers of one goroutine: blocks of rows in float64.
type wideRows struct {
	c, count     int // numbers of a row, rows of a block
	rows, second []float64
	gamma, beta  []float64
	sums         []float64
	means, rstds []float64
	gradSums     []vec.SlopeSums
	slopes       []vec.RowSlope
}

// widePool holds wideRows for reuse.
var widePool = sync.Pool{New: func() any { return new(wideRows) }}

// newWideRows returns scratch memory for rows of c numbers, with gamma, until it is put back into
// the pool.
func newWideRows(c int, gamma []float32) *wideRows {
	w := widePool.Get().(*wideRows)
	if stride := kernel.Padded(c); w.c != c {
		count := max(1, min(layerRows, wideFloats/stride))
		*w = wideRows{c: c, count: count, rows: make([]float64, count*stride), second: make([]float64, count*stride),
			gamma: make([]float64, stride), beta: make([]float64, stride), sums: make([]float64, count),
			means: make([]float64, count), rstds: make([]float64, count), gradSums: make([]vec.SlopeSums, count),
			slopes: make([]vec.RowSlope, count)}
	}
	vec.WidenSums(w.sums[:1], w.gamma, gamma, c)
	return w
}

// shift returns the operand beta in float64, or nil where there is none.
func (w *wideRows) shift(o *kernel.Args, beta int) []float64 {
	if beta >= len(o.In) {
		return nil
	}
	vec.WidenSums(w.sums[:1], w.beta, o.In[beta], w.c)
	return w.beta
}

func layerNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), func(o *kernel.Args, part, of int) {
		c, w := o.Dims[1], newWideRows(o.Dims[1], o.In[1])
		defer widePool.Put(w)
		beta := w.shift(o, 2)
		for r, to := kernel.SplitUnits(part, of, o.Dims[0], 1); r < to; r += w.count {
			n := min(w.count, to-r)
			w.layerNorm(o.Out[0][r*c:][:n*c], o.In[0][r*c:][:n*c], beta, o.Out[1][r:][:n], o.Out[2][r:][:n], o.Attr)
		}
	})
	return nil
}

func addLayerNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), func(o *kernel.Args, part, of int) {
		c, w := o.Dims[1], newWideRows(o.Dims[1], o.In[2])
		defer widePool.Put(w)
		beta := w.shift(o, 3)
		for r, to := kernel.SplitUnits(part, of, o.Dims[0], 1); r < to; r += w.count {
			n := min(w.count, to-r)
			sum := o.Out[0][r*c:][:n*c]
			vec.Adds(sum, o.In[0][r*c:][:n*c], o.In[1][r*c:][:n*c])
			w.layerNorm(o.Out[1][r*c:][:n*c], sum, beta, o.Out[2][r:][:n], o.Out[3][r:][:n], o.Attr)
		}
	})
	return nil
}

func rmsNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), func(o *kernel.Args, part, of int) {
		c, w := o.Dims[1], newWideRows(o.Dims[1], o.In[1])
		defer widePool.Put(w)
		for r, to := kernel.SplitUnits(part, of, o.Dims[0], 1); r < to; r += w.count {
			n := min(w.count, to-r)
			vec.WidenSums(w.sums[:n], w.rows, o.In[0][r*c:][:n*c], c)
			clear(w.means)
			w.scale(o.Out[0][r*c:][:n*c], nil, o.Out[1][r:][:n], o.Attr)
		}
	})
	return nil
}

// layerNorm normalizes a block of rows of x.
func (w *wideRows) layerNorm(y, x []float32, beta []float64, mean, rstd []float32, eps float64) {
	sums := w.sums[:len(mean)]
	vec.WidenSums(sums, w.rows, x, w.c)
	for i, sum := range sums {
		w.means[i] = sum / float64(w.c)
		mean[i] = float32(w.means[i])
	}
	w.scale(y, beta, rstd, eps)
}

// scale subtracts the means from a block of rows in float64, and writes them times 1/sqrt(variance
// + eps) and gamma to y.
func (w *wideRows) scale(y []float32, beta []float64, rstd []float32, eps float64) {
	sums, rstds := w.sums[:len(rstd)], w.rstds[:len(rstd)]
	vec.CenterSquares(sums, w.rows, w.means[:len(rstd)], w.c)
	for i, sum := range sums {
		rstds[i] = 1 / math.Sqrt(sum/float64(w.c)+eps)
		rstd[i] = float32(rstds[i])
	}
	vec.NormalizeRows(y, w.rows, w.gamma, beta, rstds, w.c)
}

// layerGrad is one call of a gradient.
type layerGrad struct {
	m, c                     int
	x, dy, gamma, mean, rstd []float32
	add, dx, dgamma, dbeta   []float32
	gammaBlocks, betaBlocks  []float64 // the sums of each block
	blocks                   int
}

// layerGrads holds layerGrad for reuse of the blocks.
var layerGrads = sync.Pool{New: func() any { return new(layerGrad) }}

// set takes the operands of a call.
func (g *layerGrad) set(o *kernel.Args) {
	in := o.In
	g.m, g.c = o.Dims[0], o.Dims[1]
	g.x, g.dy, g.gamma = in[0], in[1], in[2]
	g.mean, g.add, g.dbeta = nil, nil, nil
	if in = in[3:]; len(in) > 1 {
		g.mean, in = in[0], in[1:]
	}
	if g.rstd = in[0]; len(in) > 1 {
		g.add = in[1]
	}
	if g.dx, g.dgamma = o.Out[0], o.Out[1]; len(o.Out) > 2 {
		g.dbeta = o.Out[2]
	}
	g.blocks = (g.m + layerRows - 1) / layerRows
	if n := g.blocks * kernel.Padded(g.c); len(g.gammaBlocks) < n {
		g.gammaBlocks, g.betaBlocks = make([]float64, n), make([]float64, n)
	}
}

// layerNormGrad computes the blocks of rows, and adds their sums in order.
func layerNormGrad(o *kernel.Args) error {
	g := layerGrads.Get().(*layerGrad)
	g.set(o)
	parts := min(rowParts(o), g.blocks)
	if parts > 1 {
		o.Parallel(parts, func(o *kernel.Args, part, of int) { g.part(part, of) })
	} else {
		g.part(0, 1)
	}
	g.fold(g.dgamma, g.gammaBlocks)
	if g.dbeta != nil {
		g.fold(g.dbeta, g.betaBlocks)
	}
	*g = layerGrad{gammaBlocks: g.gammaBlocks, betaBlocks: g.betaBlocks}
	layerGrads.Put(g)
	return nil
}

func (g *layerGrad) fold(dst []float32, blocks []float64) {
	for j := range dst {
		sum := 0.0
		for b := range g.blocks {
			sum += blocks[b*kernel.Padded(g.c)+j]
		}
		dst[j] = float32(sum)
	}
}

func (g *layerGrad) part(part, of int) {
	w, stride := newWideRows(g.c, g.gamma), kernel.Padded(g.c)
	defer widePool.Put(w)
	from, to := kernel.SplitUnits(part, of, g.blocks, 1)
	for b := from; b < to; b++ {
		forGamma, forBeta := g.gammaBlocks[b*stride:][:stride], g.betaBlocks[b*stride:][:stride]
		clear(forGamma)
		clear(forBeta)
		last := min((b+1)*layerRows, g.m)
		for r := b * layerRows; r < last; r += w.count {
			g.rows(r, min(w.count, last-r), w, forGamma, forBeta)
		}
	}
}

// rows computes dx of rows from row r on, and adds their terms of dgamma and dbeta.
func (g *layerGrad) rows(r, rows int, w *wideRows, forGamma, forBeta []float64) {
	c, n := g.c, float64(g.c)
	x, dy, sums, slopes := g.x[r*c:][:rows*c], g.dy[r*c:][:rows*c], w.gradSums[:rows], w.slopes[:rows]
	means := w.means[:rows]
	clear(means)
	if g.mean != nil {
		for i, mean := range g.mean[r:][:rows] {
			means[i] = float64(mean)
		}
	}
	vec.GradSums(sums, w.rows, w.second, x, dy, w.gamma, means, c)
	for i, s := range sums {
		rstd, a, delta := float64(g.rstd[r+i]), 0.0, 0.0
		if g.mean != nil {
			a, delta = s.Slope/n, s.Off/n
		}
		slopes[i] = vec.RowSlope{Delta: delta, RStd: rstd, A: a, B: (s.Along/n - float64(delta*a)) * rstd}
	}
	var add []float32
	if g.add != nil {
		add = g.add[r*c:][:rows*c]
	}
	vec.GradRows(g.dx[r*c:][:rows*c], add, w.rows, w.second, w.gamma, forGamma, forBeta, slopes, c)
}
