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
// Backward. d = x − mean and rstd are those of the rounded outputs, g = gamma·dy. δ = Σ d/c
// is what the rounding of the mean lost. With A = Σ g/c, B = (Σ g·d/c − δ·A)·rstd, x̂ = (d−δ)·rstd,
// dx = ((g − A) − x̂·B)·rstd, rounded once. dgamma = Σ dy·x̂ and dbeta = Σ dy over the rows of a block,
// in order, and then over the blocks.
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

// wideRows are what one goroutine computes in: blocks of rows in float64.
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

// newWideRows returns room for rows of c numbers, with gamma and with beta unless that is nil, until
// it is put back into the pool.
func newWideRows(c int, gamma, beta []float32) *wideRows {
	w := widePool.Get().(*wideRows)
	if stride := vec.WideStride(c); w.c != c {
		count := max(1, min(layerRows, wideFloats/stride))
		*w = wideRows{c: c, count: count, rows: make([]float64, count*stride), second: make([]float64, count*stride),
			gamma: make([]float64, stride), beta: make([]float64, stride), sums: make([]float64, count),
			means: make([]float64, count), rstds: make([]float64, count), gradSums: make([]vec.SlopeSums, count),
			slopes: make([]vec.RowSlope, count)}
	}
	vec.WidenSums(w.sums[:1], w.gamma, gamma, c)
	if beta != nil {
		vec.WidenSums(w.sums[:1], w.beta, beta, c)
	}
	return w
}

// forward is one call of a normalization: of x, or of x + d, which is written to sum. beta and mean
// are nil where it has none.
type forward struct {
	x, d, sum, y []float32
	gamma, beta  []float32
	mean, rstd   []float32
}

func layerNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), func(o *kernel.Args, part, of int) {
		f := forward{x: o.In[0], y: o.Out[0], gamma: o.In[1], beta: optional(o.In, 2), mean: o.Out[1], rstd: o.Out[2]}
		f.run(o, part, of)
	})
	return nil
}

func addLayerNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), func(o *kernel.Args, part, of int) {
		f := forward{x: o.In[0], d: o.In[1], sum: o.Out[0], y: o.Out[1], gamma: o.In[2], beta: optional(o.In, 3),
			mean: o.Out[2], rstd: o.Out[3]}
		f.run(o, part, of)
	})
	return nil
}

func rmsNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), func(o *kernel.Args, part, of int) {
		f := forward{x: o.In[0], y: o.Out[0], gamma: o.In[1], rstd: o.Out[1]}
		f.run(o, part, of)
	})
	return nil
}

// optional returns operand i, nil if there is none.
func optional(operands [][]float32, i int) []float32 {
	if i < len(operands) {
		return operands[i]
	}
	return nil
}

// run normalizes the rows of a part.
func (f *forward) run(o *kernel.Args, part, of int) {
	m, c := o.Dims[0], o.Dims[1]
	w := newWideRows(c, f.gamma, f.beta)
	defer widePool.Put(w)
	for r, to := kernel.SplitUnits(part, of, m, 1); r < to; r += w.count {
		w.normalize(f, r, min(w.count, to-r), o.Attr)
	}
}

// normalize normalizes rows from row r on.
func (w *wideRows) normalize(f *forward, r, rows int, eps float64) {
	c, n := w.c, float64(w.c)
	sums, means, rstds, x := w.sums[:rows], w.means[:rows], w.rstds[:rows], f.x[r*c:][:rows*c]
	if f.d != nil {
		sum := f.sum[r*c:][:rows*c]
		vec.Adds(sum, x, f.d[r*c:][:rows*c])
		x = sum
	}
	vec.WidenSums(sums, w.rows, x, c)
	clear(means)
	if f.mean != nil {
		for i, sum := range sums {
			means[i] = sum / n
			f.mean[r+i] = float32(means[i])
		}
	}
	vec.CenterSquares(sums, w.rows, means, c)
	for i, sum := range sums {
		rstds[i] = 1 / math.Sqrt(sum/n+eps)
		f.rstd[r+i] = float32(rstds[i])
	}
	var beta []float64
	if f.beta != nil {
		beta = w.beta
	}
	vec.NormalizeRows(f.y[r*c:][:rows*c], w.rows, w.gamma, beta, rstds, c)
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
	if n := g.blocks * vec.WideStride(g.c); len(g.gammaBlocks) < n {
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

// fold adds the sums of the blocks.
func (g *layerGrad) fold(dst []float32, blocks []float64) {
	for j := range dst {
		sum := 0.0
		for b := range g.blocks {
			sum += blocks[b*vec.WideStride(g.c)+j]
		}
		dst[j] = float32(sum)
	}
}

func (g *layerGrad) part(part, of int) {
	w, stride := newWideRows(g.c, g.gamma, nil), vec.WideStride(g.c)
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

// rows computes dx of rows from row r on, and adds what they contribute to dgamma and dbeta.
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
