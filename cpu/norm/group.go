package norm

import (
	"math"
	"sync"

	"fspda/cpu/kernel"
	"fspda/device"
)

// Group normalization of n images of m pixels and c channels, whose channels form g groups. To the
// last bit, for every image and every group, of M = m·c/g numbers:
//
// Forward. s is the group's first x. In float64, with d = x − s, the sums of Σ d and Σ d² of each
// channel are as in batch normalization over the image's pixels. S1 and S2 add them from the
// group's first channel to its last, beginning with +0, and
//
//	mean = s + S1/M,  var = max((S2 − S1·(S1/M))/M, 0).
//
// The affine map of a channel, its result, a sum and a ReLU are as in batch normalization.
//
// Backward. The sums A and B of each channel of each image, and g, are as in batch
// normalization. In float64, with P = Σ gamma·A and Q = Σ gamma·B over the channels of a group, in
// order, and inv = 1/sqrt(var+eps),
//
//	dbeta = Σ A,  dgamma = Σ B·inv  over the images in order,
//	k = gamma·inv,  b = −((inv·inv)·(Q·inv))/M,  e = −(inv·P)/M,  dx = (k·g) + (((x−mean)·b) + e),
//
// dbeta, dgamma, k, b and e rounded to float32 and each step of dx as well. dz is g.

// GroupKernels normalize groups of channels of each image.
var GroupKernels = kernel.Table{
	device.GroupNorm:            {Run: groupNorm(plain)},
	device.GroupNormReLU:        {Run: groupNorm(withReLU)},
	device.GroupNormAddReLU:     {Run: groupNorm(withAddReLU)},
	device.GroupNormGrad:        {Run: groupNormGrad(plain)},
	device.GroupNormReLUGrad:    {Run: groupNormGrad(withReLU)},
	device.GroupNormAddReLUGrad: {Run: groupNormGrad(withAddReLU)},
	device.EvoNorm:              {Run: evoNorm},
	device.EvoNormGrad:          {Run: evoNormGrad},
}

// imageParts returns into how many parts to divide the images of a call.
func imageParts(o *kernel.Args) int {
	n, m, c := o.Dims[0], o.Dims[1], o.Dims[2]
	return max(1, min(o.Threads(), n*m*c/leastRows, n))
}

// imageKernel returns a kernel that divides its images among the workers.
func imageKernel(run func(o *kernel.Args, from, to int)) func(*kernel.Args) error {
	part := func(o *kernel.Args, part, of int) {
		from, to := kernel.SplitUnits(part, of, o.Dims[0], 1)
		run(o, from, to)
	}
	return func(o *kernel.Args) error {
		o.Parallel(imageParts(o), part)
		return nil
	}
}

// groupShape is the shape of the images of a call: m pixels, c channels, g groups of width
// channels.
type groupShape struct{ m, c, g, width int }

func groupsOf(o *kernel.Args) groupShape {
	return groupShape{o.Dims[1], o.Dims[2], o.Dims[3], o.Dims[2] / o.Dims[3]}
}

func (s groupShape) numbers() float64 { return float64(s.m * s.width) }

// channelBuffers holds values for each channel of an image. A call takes one from a pool.
type channelBuffers struct {
	sum, part     [3][]float64 // sums of all blocks and of the current one; zeros between images
	mean, a, b, e []float32
	swish         swish // buffers of EvoNorm
}

var channelPool = sync.Pool{New: func() any { return new(channelBuffers) }}

func channelsFor(c int) *channelBuffers {
	w := channelPool.Get().(*channelBuffers)
	if n := kernel.Padded(c); len(w.mean) < n {
		for _, v := range []*[]float32{&w.mean, &w.a, &w.b, &w.e} {
			*v = kernel.Aligned(n)
		}
		for i := range w.sum {
			w.sum[i], w.part[i] = make([]float64, n), make([]float64, n)
		}
	}
	return w
}

// clearSums clears the sums for the next image.
func (w *channelBuffers) clearSums(c int) {
	for i := range w.sum {
		clear(w.sum[i][:kernel.Padded(c)])
	}
}

// eachSpan runs a loop over the pixels of an image, in blocks whose sums are added to the total,
// and in each block over at most maxCols channels and as many rows as a loop passes in
// microseconds.
func (w *channelBuffers) eachSpan(g groupShape, run func(s span, at, col int)) {
	for col := 0; col < g.c; col += maxCols {
		cols := min(maxCols, g.c-col)
		step := rowsPerCall(cols)
		for from := 0; from < g.m; from += blockRows {
			end := min(from+blockRows, g.m)
			for i := from; i < end; i += step {
				run(span{g.c, min(step, end-i), cols, columnPrefetch(g.m, g.c, step)}, i*g.c+col, col)
			}
			for i := range w.sum {
				active().fold(w.sum[i][col:][:kernel.Padded(cols)], w.part[i][col:][:kernel.Padded(cols)])
			}
		}
	}
}

// statistics computes the mean and the variance of each group of an image. then gets the unrounded
// mean, and the variance plus eps.
func (w *channelBuffers) statistics(g groupShape, eps float64, x, mean, variance []float32,
	then func(group int, mean, square float64)) {
	for j := range g.c {
		w.mean[j] = x[j/g.width*g.width]
	}
	w.eachSpan(g, func(s span, at, col int) {
		active().moments(s, x[at:], w.mean[col:], w.part[0][col:], w.part[1][col:])
	})
	n := g.numbers()
	for k := range g.g {
		s1, s2 := 0.0, 0.0
		for j := k * g.width; j < (k+1)*g.width; j++ {
			s1, s2 = s1+w.sum[0][j], s2+w.sum[1][j]
		}
		d := s1 / n
		v := (s2 - float64(s1*d)) / n
		if v < 0 {
			v = 0
		}
		center := float64(w.mean[k*g.width]) + d
		mean[k], variance[k] = float32(center), float32(v)
		then(k, center, v+eps)
	}
	w.clearSums(g.c)
}

func groupNorm(activation int) func(*kernel.Args) error {
	return imageKernel(func(o *kernel.Args, from, to int) {
		g := groupsOf(o)
		w := channelsFor(g.c)
		size := g.m * g.c
		affine := active().affine[nonTemporal(o.Out[0], g.c, nonTemporalBytes)][activation]
		for i := from; i < to; i++ {
			x, y := o.In[0][i*size:][:size], o.Out[0][i*size:][:size]
			w.statistics(g, o.Attr, x, o.Out[1][i*g.g:], o.Out[2][i*g.g:], func(k int, mean, square float64) {
				for j := k * g.width; j < (k+1)*g.width; j++ {
					w.affine(j, mean, square, o.In[1][j], o.In[2][j])
				}
			})
			var z []float32
			if activation == withAddReLU {
				z = o.In[3][i*size:][:size]
			}
			w.backwards(g, func(s span, at, col int) {
				affine(s, x[at:], fromOffset(z, at), y[at:], w.b[col:], w.a[col:], w.e[col:])
			})
		}
		active().fence()
		channelPool.Put(w)
	})
}

// affine sets the affine map of a channel: b is the mean, a the scale and e the shift.
func (w *channelBuffers) affine(j int, mean, square float64, gamma, beta float32) {
	k := float64(gamma) / math.Sqrt(square)
	w.b[j] = float32(mean)
	w.a[j] = float32(k)
	w.e[j] = float32(float64(beta) - float64((mean-float64(w.b[j]))*k))
}

// backwards runs a loop over the pixels of an image from its last rows to its first, since the last
// ones are still in the cache.
func (w *channelBuffers) backwards(g groupShape, run func(s span, at, col int)) {
	for col := 0; col < g.c; col += maxCols {
		cols := min(maxCols, g.c-col)
		step := rowsPerCall(cols)
		for i := (g.m - 1) / step * step; i >= 0; i -= step {
			run(span{g.c, min(step, g.m-i), cols, rowPrefetch(2)}, i*g.c+col, col)
		}
	}
}

// groupGradient is one call of a gradient of GroupNorm or EvoNorm.
type groupGradient struct {
	groupShape
	activation       int
	eps              float64
	x, y, dy, dx, dz []float32
	gamma, v         []float32
	mean, variance   []float32
	// terms of the gradients of the parameters by image and channel
	sums [3][]float64
}

var groupGradients = sync.Pool{New: func() any { return new(groupGradient) }}

// groupGradientOf returns a gradient with sums for every channel of every image.
func groupGradientOf(o *kernel.Args) *groupGradient {
	n := groupGradients.Get().(*groupGradient)
	*n = groupGradient{groupShape: groupsOf(o), eps: o.Attr, x: o.In[0], dx: o.Out[0], sums: n.sums}
	for i := range n.sums {
		if numbers := o.Dims[0] * n.c; len(n.sums[i]) < numbers {
			n.sums[i] = make([]float64, numbers)
		}
	}
	return n
}

// finish adds the sums of the images, in order, to gradients of the parameters.
func (n *groupGradient) finish(images int, grads ...[]float32) {
	for i, dst := range grads {
		for j := range dst {
			sum := 0.0
			for image := range images {
				sum += n.sums[i][image*n.c+j]
			}
			dst[j] = float32(sum)
		}
	}
	*n = groupGradient{sums: n.sums}
	groupGradients.Put(n)
}

func groupNormGrad(activation int) func(*kernel.Args) error {
	return func(o *kernel.Args) error {
		n := groupGradientOf(o)
		in, out := o.In[1:], o.Out
		if n.activation = activation; activation != plain {
			n.y, in = in[0], in[1:]
		}
		n.dy, n.gamma, n.mean, n.variance = in[0], in[1], in[2], in[3]
		if activation == withAddReLU {
			n.dz, out = out[1], out[1:]
		}
		n.eachImage(o, (*groupGradient).images)
		n.finish(o.Dims[0], out[1], out[2])
		return nil
	}
}

// eachImage divides the images among the workers.
func (n *groupGradient) eachImage(o *kernel.Args, run func(n *groupGradient, from, to int)) {
	parts := imageParts(o)
	if parts == 1 {
		run(n, 0, o.Dims[0])
		return
	}
	o.Parallel(parts, func(o *kernel.Args, part, of int) {
		from, to := kernel.SplitUnits(part, of, o.Dims[0], 1)
		run(n, from, to)
	})
}

func (n *groupGradient) nonTemporal(y []float32) int { return nonTemporal(y, n.c, gradientBytes) }

// fromOffset returns a matrix from an offset on; nil stays nil.
func fromOffset(matrix []float32, at int) []float32 {
	if matrix == nil {
		return nil
	}
	return matrix[at:]
}

func (n *groupGradient) images(from, to int) {
	w := channelsFor(n.c)
	g, activation := n.dy, n.activation
	if activation == withAddReLU { // the first pass leaves g in dz
		g, activation = n.dz, plain
	}
	gradSums, gradient := active().gradSums[n.nonTemporal(n.dz)][n.activation],
		active().gradient[n.nonTemporal(n.dx)][activation]
	for i := from; i < to; i++ {
		base := i * n.m * n.c
		for j := range n.c {
			w.mean[j] = n.mean[i*n.g+j/n.width]
		}
		w.eachSpan(n.groupShape, func(s span, at, col int) {
			at += base
			gradSums(s, n.x[at:], n.dy[at:], fromOffset(n.y, at), fromOffset(n.dz, at), w.mean[col:], w.part[0][col:],
				w.part[1][col:])
		})
		n.factors(w, i)
		w.backwards(n.groupShape, func(s span, at, col int) {
			at += base
			gradient(s, n.x[at:], g[at:], fromOffset(n.y, at), n.dx[at:], w.mean[col:], w.a[col:], w.b[col:], w.e[col:])
		})
	}
	active().fence()
	channelPool.Put(w)
}

// factors turns the sums of an image into the factors of dx, and keeps their terms of the
// gradients of the parameters.
func (n *groupGradient) factors(w *channelBuffers, image int) {
	for k := range n.g {
		inv := 1 / math.Sqrt(float64(n.variance[image*n.g+k])+n.eps)
		p, q := 0.0, 0.0
		for j := k * n.width; j < (k+1)*n.width; j++ {
			gamma := float64(n.gamma[j])
			p += float64(gamma * w.sum[0][j])
			q += float64(gamma * w.sum[1][j])
		}
		b, e := float32(-(inv*inv*float64(q*inv))/n.numbers()), float32(-(inv*p)/n.numbers())
		for j := k * n.width; j < (k+1)*n.width; j++ {
			w.a[j], w.b[j], w.e[j] = float32(float64(n.gamma[j])*inv), b, e
			n.sums[0][image*n.c+j] = w.sum[1][j] * inv
			n.sums[1][image*n.c+j] = w.sum[0][j]
		}
	}
	w.clearSums(n.c)
}
