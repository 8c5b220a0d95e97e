package vec

import "fspda/cpu/kernel"

var (
	geluTanh = inParts(func(o *kernel.Args, from, to int) { GELUs(Tanh, o.Out[0][from:to], o.In[0][from:to]) })
	geluErf  = inParts(func(o *kernel.Args, from, to int) { GELUs(Erf, o.Out[0][from:to], o.In[0][from:to]) })

	geluTanhGrad = inParts(func(o *kernel.Args, from, to int) {
		GELUGrads(Tanh, o.Out[0][from:to], o.In[0][from:to], o.In[1][from:to])
	})
	geluErfGrad = inParts(func(o *kernel.Args, from, to int) {
		GELUGrads(Erf, o.Out[0][from:to], o.In[0][from:to], o.In[1][from:to])
	})
)

// GELUForm is a form of GELU.
type GELUForm uint8

// The forms of GELU.
const (
	Tanh GELUForm = iota // x·σ(2·sqrt(2/π)·(x + 0.044715·x³))
	Erf                  // x·Φ(x)
)

// GELUs writes GELU of x to dst, which may be x.
func GELUs(form GELUForm, dst, x []float32) { gelus(tails[form], dst, x) }

// GELUGrads writes dy times the derivative of GELU at x to dst, which may be x or dy.
func GELUGrads(form GELUForm, dst, x, dy []float32) { geluGrads(slopes[form], dst, x, dy) }

// swiGLU: y = g·σ(g)·u.
func swiGLU(o *kernel.Args) error {
	o.ParallelRange(len(o.Out[0]), func(o *kernel.Args, part, of int) {
		f := o.Dims[1]
		from, to := kernel.SplitUnits(part, of, o.Dims[0], 1)
		for r := from; r < to; r++ {
			gu, y := o.In[0][r*2*f:][:2*f], o.Out[0][r*f:][:f]
			swiGLURow(y, gu[:f], gu[f:])
		}
	})
	return nil
}

// swiGLURow computes in float64 and rounds once.
func swiGLURow(y, gate, up []float32) {
	var buffer [expBlock]float64
	for len(y) > 0 {
		e := buffer[:min(expBlock, len(y))]
		for i, v := range gate[:len(e)] {
			e[i] = -float64(v)
		}
		exps(e)
		for i, v := range e {
			y[i] = float32(float64(float64(gate[i])*float64(up[i])) / (1 + v))
		}
		y, gate, up = y[len(e):], gate[len(e):], up[len(e):]
	}
}

// swiGLUGrad: with s = σ(g), dg = dy·u·s·(1+g·(1−s)), du = dy·g·s.
func swiGLUGrad(o *kernel.Args) error {
	o.ParallelRange(len(o.Out[0]), func(o *kernel.Args, part, of int) {
		f := o.Dims[1]
		from, to := kernel.SplitUnits(part, of, o.Dims[0], 1)
		for r := from; r < to; r++ {
			gu, dy, d := o.In[0][r*2*f:][:2*f], o.In[1][r*f:][:f], o.Out[0][r*2*f:][:2*f]
			swiGLUGradRow(d[:f], d[f:], gu[:f], gu[f:], dy)
		}
	})
	return nil
}

func swiGLUGradRow(dgate, dup, gate, up, dy []float32) {
	var buffer [expBlock]float64
	for len(dy) > 0 {
		e := buffer[:min(expBlock, len(dy))]
		for i, v := range gate[:len(e)] {
			e[i] = -float64(v)
		}
		exps(e)
		for i, v := range e {
			g, s := float64(gate[i]), 1/(1+v)
			d := float64(float64(dy[i]) * s)
			dgate[i] = float32(float64(d*float64(up[i])) * (1 + float64(g*float64(v*s))))
			dup[i] = float32(d * g)
		}
		n := len(e)
		dgate, dup, gate, up, dy = dgate[n:], dup[n:], gate[n:], up[n:], dy[n:]
	}
}
