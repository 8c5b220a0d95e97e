package norm

import (
	"math"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
)

// EvoNorm-S0 of n images whose c channels form g groups. The statistics are those of group
// normalization. To the last bit, each operation on float32 rounded to float32, with
// k = gamma/sqrt(var+eps) computed in float64 and rounded once, for every number:
//
// Forward. t = v·x, s = σ(t) as in device.Sigmoid, y = (x·s)·k + beta.
//
// Backward. With w = s·σ(−t), in float64, from the first pixel of an image to its last,
//
//	A = Σ dy,  B = Σ dy·(x·s),  C = Σ dy·(x·(x·w)),
//
// where products with dy are exact. With inv = 1/sqrt(var+eps), Q = Σ gamma·B over the channels of
// a group, in order, and M its numbers,
//
//	dbeta = Σ A,  dgamma = Σ B·inv,  dv = Σ C·(gamma·inv)  over the images in order,
//	q = −((inv·inv)·(Q·inv))/M,  dx = (dy·k)·(s + t·w) + (x−mean)·q,
//
// dbeta, dgamma, dv and q rounded to float32.

// gateNumbers is how many sigmoids are computed at a time.
const gateNumbers = 2048

// gateValues are t, s and w of some numbers.
type gateValues struct{ t, s, w []float32 }

// row returns the values of n numbers.
func (a gateValues) row(from, n int) gateValues {
	return gateValues{a.t[from:][:n], a.s[from:][:n], a.w[from:][:n]}
}

// slopes computes w.
func (a gateValues) slopes() {
	for j, t := range a.t {
		a.w[j] = -t
	}
	vec.Sigmoids(a.w, a.w)
	for j, s := range a.s {
		a.w[j] *= s
	}
}

// gates computes s of rows of channels at a time, and t and w if slopes is set. run gets the rows
// from the number at on.
func (w *channelBuffers) gates(g groupShape, x, v []float32, slopes bool, run func(at int, x []float32, a gateValues)) {
	step := max(1, gateNumbers/g.c) * g.c
	w.gate.t, w.gate.s, w.gate.w = kernel.Grow(w.gate.t, step), kernel.Grow(w.gate.s, step),
		kernel.Grow(w.gate.w, step)
	for at := 0; at < len(x); at += step {
		part := x[at:min(at+step, len(x))]
		a := gateValues{w.gate.t[:len(part)], w.gate.s[:len(part)], w.gate.w[:len(part)]}
		for from := 0; from < len(part); from += g.c {
			row, out := part[from:][:g.c], a.t[from:][:g.c]
			for j, slope := range v[:g.c] {
				out[j] = slope * row[j]
			}
		}
		vec.Sigmoids(a.s, a.t)
		if slopes {
			a.slopes()
		}
		run(at, part, a)
	}
}

// evoNorm: y = gamma·x·σ(v·x)/sqrt(var+eps) + beta.
var evoNorm = imageKernel(func(o *kernel.Args, from, to int) {
	g := groupsOf(o)
	w := channelsFor(g.c)
	size := g.m * g.c
	for i := from; i < to; i++ {
		x, y := o.In[0][i*size:][:size], o.Out[0][i*size:][:size]
		w.statistics(g, o.Attr, x, o.Out[1][i*g.g:], o.Out[2][i*g.g:], func(k int, _, square float64) {
			for j := k * g.width; j < (k+1)*g.width; j++ {
				w.a[j] = float32(float64(o.In[1][j]) / math.Sqrt(square))
			}
		})
		scale, beta := w.a[:g.c], o.In[2][:g.c]
		w.gates(g, x, o.In[3], false, func(at int, x []float32, a gateValues) {
			for from := 0; from < len(x); from += g.c {
				row, gate, out := x[from:][:g.c], a.s[from:][:g.c], y[at+from:][:g.c]
				for j, k := range scale {
					out[j] = float32(float32(row[j]*gate[j])*k) + beta[j]
				}
			}
		})
	}
	channelPool.Put(w)
})

// evoNormGrad is the gradient of evoNorm.
func evoNormGrad(o *kernel.Args) error {
	n := groupGradientOf(o)
	n.dy, n.gamma, n.v, n.mean, n.variance = o.In[1], o.In[2], o.In[3], o.In[4], o.In[5]
	n.eachImage(o, (*groupGradient).evoImages)
	n.finish(o.Dims[0], o.Out[1], o.Out[2], o.Out[3])
	return nil
}

func (n *groupGradient) evoImages(from, to int) {
	w := channelsFor(n.c)
	size := n.m * n.c
	for i := from; i < to; i++ {
		x, dy, dx := n.x[i*size:][:size], n.dy[i*size:][:size], n.dx[i*size:][:size]
		n.evoSums(w, x, dy)
		n.evoFactors(w, i)
		scale, slope, mean := w.a[:n.c], w.b[:n.c], w.mean[:n.c]
		w.gates(n.groupShape, x, n.v, true, func(at int, x []float32, a gateValues) {
			for from := 0; from < len(x); from += n.c {
				row, gate := x[from:][:n.c], a.row(from, n.c)
				g, out := dy[at+from:][:n.c], dx[at+from:][:n.c]
				for j, k := range scale {
					h := gate.s[j] + float32(gate.t[j]*gate.w[j])
					out[j] = float32(float32(g[j]*k)*h) + float32((row[j]-mean[j])*slope[j])
				}
			}
		})
	}
	channelPool.Put(w)
}

// evoSums computes A, B and C of an image.
func (n *groupGradient) evoSums(w *channelBuffers, x, dy []float32) {
	a, b, c := w.sum[0][:n.c], w.sum[1][:n.c], w.sum[2][:n.c]
	w.gates(n.groupShape, x, n.v, true, func(at int, x []float32, v gateValues) {
		for from := 0; from < len(x); from += n.c {
			row, gate, g := x[from:][:n.c], v.row(from, n.c), dy[at+from:][:n.c]
			for j, x := range row {
				grad := float64(g[j])
				a[j] += grad
				b[j] += float64(grad * float64(float32(x*gate.s[j])))
				c[j] += float64(grad * float64(float32(x*float32(x*gate.w[j]))))
			}
		}
	})
}

// evoFactors turns the sums of an image into the factors of dx, and keeps what they add to the
// gradients of the parameters.
func (n *groupGradient) evoFactors(w *channelBuffers, image int) {
	for k := range n.g {
		inv := 1 / math.Sqrt(float64(n.variance[image*n.g+k])+n.eps)
		q := 0.0
		for j := k * n.width; j < (k+1)*n.width; j++ {
			q += float64(float64(n.gamma[j]) * w.sum[1][j])
		}
		slope := float32(-(inv * inv * float64(q*inv)) / n.numbers())
		for j := k * n.width; j < (k+1)*n.width; j++ {
			scale, at := float64(n.gamma[j])*inv, image*n.c+j
			w.a[j], w.b[j], w.mean[j] = float32(scale), slope, n.mean[image*n.g+k]
			n.sums[0][at], n.sums[1][at], n.sums[2][at] = w.sum[1][j]*inv, w.sum[0][j], w.sum[2][j]*scale
		}
	}
	w.clearSums(n.c)
}
