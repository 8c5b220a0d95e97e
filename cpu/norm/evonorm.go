package norm

import (
	"math"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
)

// EvoNorm-S0 of n images whose c channels form g groups. The statistics are as in group
// normalization. To the last bit, for every image and every group, of M = m·c/g numbers:
//
// Forward. With k = gamma/sqrt(var+eps), computed in float64 and rounded once, and u = x·σ(v·x) as
// in [vec.Swishes], y = u·k + beta, each operation rounded to float32.
//
// Backward. With u, h = dy·du/dx and w = du/dv as in [vec.SwishGrads], in float64, from the first
// pixel of an image to its last, product and addition rounded once,
//
//	A = Σ dy,  B = Σ dy·u,  C = Σ dy·w.
//
// With inv = 1/sqrt(var+eps) and Q = Σ gamma·B over the channels of a group, in order,
//
//	dbeta = Σ A,  dgamma = Σ B·inv,  dv = Σ C·(gamma·inv)  over the images in order,
//	k = gamma·inv,  b = −((inv·inv)·(Q·inv))/M,  dx = (k·h) + ((x−mean)·b + 0),
//
// dbeta, dgamma, dv, k and b rounded to float32 and each step of dx as well.

// swishNumbers is the count of numbers that are computed at a time: their operands fit the
// first-level cache.
const swishNumbers = 1024

// swish holds u and w of some rows, and v for each of their numbers.
type swish struct{ u, w, v []float32 }

// eachRows calls run for rows of an image, few enough for the results of Swish to stay in the
// cache. The buffers have as many numbers as the rows.
func (w *channelBuffers) eachRows(g groupShape, v []float32, run func(at int, b swish)) {
	size, step := g.m*g.c, max(1, swishNumbers/g.c)*g.c
	b := &w.swish
	b.u, b.w, b.v = kernel.Grow(b.u, step), kernel.Grow(b.w, step), kernel.Grow(b.v, step)
	for at := 0; at < step; at += g.c {
		copy(b.v[at:], v[:g.c])
	}
	for at := 0; at < size; at += step {
		n := min(step, size-at)
		run(at, swish{b.u[:n], b.w[:n], b.v[:n]})
	}
}

// eachColumns calls run for rows of whole images, which n numbers fill, at most maxCols columns at
// a time.
func (s groupShape) eachColumns(n int, run func(part span, col int)) {
	for col := 0; col < s.c; col += maxCols {
		run(span{s.c, n / s.c, min(maxCols, s.c-col), 0}, col)
	}
}

// evoNorm: y = gamma·x·σ(v·x)/sqrt(var+eps) + beta.
var evoNorm = imageKernel(func(o *kernel.Args, from, to int) {
	g := groupsOf(o)
	w := channelsFor(g.c)
	size := g.m * g.c
	affine := active().affine[nonTemporal(o.Out[0], g.c, nonTemporalBytes)][plain]
	clear(w.b)
	copy(w.e, o.In[2][:g.c])
	for i := from; i < to; i++ {
		x, y := o.In[0][i*size:][:size], o.Out[0][i*size:][:size]
		w.statistics(g, o.Attr, x, o.Out[1][i*g.g:], o.Out[2][i*g.g:], func(k int, _, square float64) {
			for j := k * g.width; j < (k+1)*g.width; j++ {
				w.a[j] = float32(float64(o.In[1][j]) / math.Sqrt(square))
			}
		})
		w.eachRows(g, o.In[3], func(at int, b swish) {
			vec.Swishes(b.u, x[at:][:len(b.u)], b.v)
			g.eachColumns(len(b.u), func(s span, col int) {
				affine(s, b.u[col:], nil, y[at+col:], w.b[col:], w.a[col:], w.e[col:])
			})
		})
	}
	active().fence()
	channelPool.Put(w)
})

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
	gradSums, gradient := active().gradSums[0][plain], active().gradient[0][plain]
	clear(w.e)
	zeros := w.e
	for i := from; i < to; i++ {
		x, dy, dx := n.x[i*size:][:size], n.dy[i*size:][:size], n.dx[i*size:][:size]
		w.eachRows(n.groupShape, n.v, func(at int, b swish) {
			vec.SwishGrads(b.u, b.w, dx[at:][:len(b.u)], x[at:], b.v, dy[at:])
			n.eachColumns(len(b.u), func(s span, col int) {
				gradSums(s, b.u[col:], dy[at+col:], nil, nil, zeros[col:], w.sum[0][col:], w.sum[1][col:])
				gradSums(s, b.w[col:], dy[at+col:], nil, nil, zeros[col:], w.part[0][col:], w.sum[2][col:])
			})
		})
		n.evoFactors(w, i)
		w.backwards(n.groupShape, func(s span, at, col int) { // dx holds h
			gradient(s, x[at:], dx[at:], nil, dx[at:], w.mean[col:], w.a[col:], w.b[col:], w.e[col:])
		})
	}
	clear(w.part[0])
	channelPool.Put(w)
}

// evoFactors turns the sums of an image into the factors of dx, and keeps their terms of the
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
