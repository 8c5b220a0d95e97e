package norm

import (
	"fspda/cpu/kernel"
)

// Max pooling, to the last bit: the pixels of a window inside the image are compared row by row;
// the first one leads, and another one replaces it if it is greater, or if it is a NaN and the
// leader is not. y has the bits of the leader, and `at` its index in the window, row·r+column,
// padding included.
//
// The gradient: an element of dx is the sum in float32, beginning with +0, of the dy of the
// windows, row by row, whose `at` is the element's index in them. There are at most ⌈r/stride⌉² of
// them, so it has the error of as many roundings.

// windows is a row of pixels whose windows have the same shape: rows×cols pixels of another image,
// contiguous in a row and with rows rowStride numbers apart. Windows of neighbouring pixels on one
// side are `channels` numbers apart, on the other side step numbers. Indices in a window count from
// firstIndex, by colStep at each pixel and by rowStep at the end of a row. The loops prefetch so
// many numbers ahead.
type windows struct {
	pixels, channels             int
	rows, cols, rowStride        int
	step, prefetch               int
	firstIndex, colStep, rowStep float32
}

// extent returns how many numbers windows span that are step apart.
func (p *windows) extent(step int) int {
	return (p.pixels-1)*step + (p.rows-1)*p.rowStride + p.cols*p.channels
}

// numbersPerPoolCall is about how many numbers of windows a loop reads in one call, so that it
// returns after microseconds.
const numbersPerPoolCall = 32768

func (p *windows) pixelsPerCall(n int) int {
	return min(n, max(1, numbersPerPoolCall/(p.rows*p.cols*p.channels)))
}

type pooling struct {
	h, w, c, r, stride, pad int
	p, q                    int // height and width of the output
}

// poolingOf reads Dims n h w c r stride pad.
func poolingOf(dims []int) (images int, g pooling) {
	g = pooling{h: dims[1], w: dims[2], c: dims[3], r: dims[4], stride: dims[5], pad: dims[6]}
	over := func(side int) int { return (side+2*g.pad-g.r)/g.stride + 1 }
	g.p, g.q = over(g.h), over(g.w)
	return dims[0], g
}

// inside returns the part inside the image of the window of output i, along an axis of the given
// size.
func (g *pooling) inside(i, size int) (low, high int) {
	begin := i*g.stride - g.pad
	return max(begin, 0), min(begin+g.r, size)
}

// whole reports whether all of that window lies inside.
func (g *pooling) whole(i, size int) bool {
	begin := i*g.stride - g.pad
	return begin >= 0 && begin+g.r <= size
}

// covering returns the half-open range of outputs whose windows hold input i, along an axis with
// count of them.
func (g *pooling) covering(i, count int) (low, high int) {
	if before := i + g.pad - g.r; before >= 0 {
		low = before/g.stride + 1
	}
	return low, min((i+g.pad)/g.stride+1, count)
}

func maxPool(o *kernel.Args) error {
	images, g := poolingOf(o.Dims)
	in, out := g.h*g.w*g.c, g.p*g.q*g.c
	for i := range images {
		g.maxima(o.In[0][i*in:][:in], o.Out[0][i*out:][:out], o.Out[1][i*out:][:out])
	}
	return nil
}

func (g *pooling) maxima(x, y, at []float32) {
	for p := range g.p {
		top, bottom := g.inside(p, g.h)
		for q := 0; q < g.q; {
			left, right := g.inside(q, g.w)
			run := windows{pixels: 1, channels: g.c, rows: bottom - top, cols: right - left, rowStride: g.w * g.c,
				step: g.stride * g.c, colStep: 1, prefetch: g.stride * g.w * g.c}
			run.firstIndex = float32((top-p*g.stride+g.pad)*g.r + left - q*g.stride + g.pad)
			run.rowStep = float32(g.r - run.cols)
			if g.whole(q, g.w) {
				run.pixels = run.pixelsPerCall((g.w+g.pad-g.r)/g.stride - q + 1)
			}
			to := (p*g.q + q) * g.c
			active().maxPool(run, x[(top*g.w+left)*g.c:], y[to:], at[to:])
			q += run.pixels
		}
	}
}

func maxPoolGrad(o *kernel.Args) error {
	images, g := poolingOf(o.Dims)
	in, out := g.h*g.w*g.c, g.p*g.q*g.c
	send := active().maxPoolGrad[nonTemporal(o.Out[0], g.c, nonTemporalBytes)]
	for i := range images {
		g.scatterGradients(send, o.In[0][i*out:][:out], o.In[1][i*out:][:out], o.Out[0][i*in:][:in])
	}
	active().fence()
	return nil
}

// scatterGradients computes dx of one image. The pixels of a row that are a stride apart have the
// same indices in their windows, and are computed together.
func (g *pooling) scatterGradients(send func(p windows, dy, at, dx []float32), dy, at, dx []float32) {
	for h := range g.h {
		top, bottom := g.covering(h, g.p)
		row := dx[h*g.w*g.c:][:g.w*g.c]
		for phase := range min(g.stride, g.w) {
			for w := phase; w < g.w; {
				left, right := g.covering(w, g.q)
				if top >= bottom || left >= right {
					clear(row[w*g.c:][:g.c])
					w += g.stride
					continue
				}
				run := windows{pixels: 1, channels: g.c, rows: bottom - top, cols: right - left, rowStride: g.q * g.c,
					step: g.stride * g.c}
				run.firstIndex = float32((h+g.pad-top*g.stride)*g.r + w + g.pad - left*g.stride)
				run.colStep = float32(-g.stride)
				run.rowStep = float32(g.stride * (run.cols - g.r))
				if g.awayFromBorder(w) {
					run.pixels = run.pixelsPerCall(min(g.q-right, (g.w-1-w)/g.stride) + 1)
				}
				from := (top*g.q + left) * g.c
				send(run, dy[from:], at[from:], row[w*g.c:])
				w += run.pixels * g.stride
			}
		}
	}
}

// awayFromBorder reports whether the border does not limit the windows that hold column w.
func (g *pooling) awayFromBorder(w int) bool {
	return w+g.pad-g.r >= -g.stride && (w+g.pad)/g.stride < g.q
}

// avgPool is AvgPool: for every channel of an image the sum of its pixels in float64, from the
// first to the last and beginning with +0, times 1/m in float64, rounded to float32.
func avgPool(o *kernel.Args) error {
	images, m, c := o.Dims[0], o.Dims[1], o.Dims[2]
	w := bufferPool.Get().(*columnBuffers)
	for i := range images {
		x, y := o.In[0][i*m*c:][:m*c], o.Out[0][i*c:][:c]
		for col := 0; col < c; col += maxCols {
			w.average(x[col:], y[col:min(col+maxCols, c)], m, c)
		}
	}
	bufferPool.Put(w)
	return nil
}

// average computes the mean over m rows, c apart, of as many columns as y has.
func (w *columnBuffers) average(x, y []float32, m, c int) {
	step := rowsPerCall(len(y))
	for i := 0; i < m; i += step {
		active().sums(span{c, min(step, m-i), len(y), columnPrefetch(m, c, step)}, x[i*c:], w.sum[0])
	}
	per := 1 / float64(m)
	for j, s := range w.sum[0][:len(y)] {
		y[j] = float32(s * per)
	}
	w.clearSums(len(y))
}

// avgPoolGrad is AvgPoolGrad: dy/m, rounded once.
func avgPoolGrad(o *kernel.Args) error {
	images, m, c := o.Dims[0], o.Dims[1], o.Dims[2]
	for i := range images {
		dy, dx := o.In[0][i*c:][:c], o.Out[0][i*m*c:][:m*c]
		first := dx[:c]
		for j, v := range dy {
			// rounding twice does not change a quotient of numbers this short
			first[j] = float32(float64(v) / float64(m))
		}
		for i := c; i < len(dx); i += c {
			copy(dx[i:][:c], first)
		}
	}
	return nil
}
