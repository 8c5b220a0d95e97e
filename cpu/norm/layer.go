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

func layerNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), layerNormPart)
	return nil
}

func layerNormPart(o *kernel.Args, part, of int) {
	var beta []float32
	if len(o.In) > 2 {
		beta = o.In[2]
	}
	c := o.Dims[1]
	from, to := kernel.SplitUnits(part, of, o.Dims[0], 1)
	for r := from; r < to; r++ {
		o.Out[1][r], o.Out[2][r] = layerRow(o.Out[0][r*c:][:c], o.In[0][r*c:][:c], o.In[1], beta, o.Attr)
	}
}

func addLayerNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), addLayerNormPart)
	return nil
}

func addLayerNormPart(o *kernel.Args, part, of int) {
	var beta []float32
	if len(o.In) > 3 {
		beta = o.In[3]
	}
	c := o.Dims[1]
	from, to := kernel.SplitUnits(part, of, o.Dims[0], 1)
	for r := from; r < to; r++ {
		a, d, s := o.In[0][r*c:][:c], o.In[1][r*c:][:c], o.Out[0][r*c:][:c]
		vec.Adds(s, a, d)
		o.Out[2][r], o.Out[3][r] = layerRow(o.Out[1][r*c:][:c], s, o.In[2], beta, o.Attr)
	}
}

// layerRow normalizes a row.
func layerRow(y, x, gamma, beta []float32, eps float64) (mean, rstd float32) {
	c := float64(len(x))
	center := vec.CenteredSum(x, 0) / c
	inverse := 1 / math.Sqrt(vec.CenteredSquares(x, center)/c+eps)
	vec.NormalizeRow(y, x, gamma, beta, center, inverse)
	return float32(center), float32(inverse)
}

func rmsNorm(o *kernel.Args) error {
	o.Parallel(rowParts(o), rmsNormPart)
	return nil
}

func rmsNormPart(o *kernel.Args, part, of int) {
	c := o.Dims[1]
	from, to := kernel.SplitUnits(part, of, o.Dims[0], 1)
	for r := from; r < to; r++ {
		x, y := o.In[0][r*c:][:c], o.Out[0][r*c:][:c]
		inverse := 1 / math.Sqrt(vec.CenteredSquares(x, 0)/float64(c)+o.Attr)
		vec.NormalizeRow(y, x, o.In[1], nil, 0, inverse)
		o.Out[1][r] = float32(inverse)
	}
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
	if n := g.blocks * g.c; len(g.gammaBlocks) < n {
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
			sum += blocks[b*g.c+j]
		}
		dst[j] = float32(sum)
	}
}

func (g *layerGrad) part(part, of int) {
	from, to := kernel.SplitUnits(part, of, g.blocks, 1)
	for b := from; b < to; b++ {
		forGamma, forBeta := g.gammaBlocks[b*g.c:][:g.c], g.betaBlocks[b*g.c:][:g.c]
		clear(forGamma)
		clear(forBeta)
		for r := b * layerRows; r < min((b+1)*layerRows, g.m); r++ {
			g.row(r, forGamma, forBeta)
		}
	}
}

// row computes dx of a row and adds what it contributes to dgamma and dbeta.
func (g *layerGrad) row(r int, forGamma, forBeta []float64) {
	c := g.c
	x, dy, dx := g.x[r*c:][:c], g.dy[r*c:][:c], g.dx[r*c:][:c]
	mean, rstd := 0.0, float64(g.rstd[r])
	if g.mean != nil {
		mean = float64(g.mean[r])
	}
	slope, along, off := vec.GradSums(x, dy, g.gamma, mean)
	n := float64(c)
	a, delta := slope/n, off/n
	if g.mean == nil {
		a, delta = 0, 0
	}
	b := (along/n - float64(delta*a)) * rstd
	vec.GradRow(dx, x, dy, g.gamma, forGamma, forBeta, &vec.RowSlope{Mean: mean, Delta: delta, RStd: rstd, A: a, B: b})
	if g.add != nil {
		vec.Adds(dx, dx, g.add[r*c:][:c])
	}
}
