package devicetest

import (
	"math"

	"fspda/device"
	"fspda/internal/rng"
)

// windows is the geometry of a pooling call.
type windows struct{ n, h, w, c, r, stride, pad, p, q int }

func windowsOf(call *device.Call) windows {
	d := call.Dims
	w := windows{n: d[0], h: d[1], w: d[2], c: d[3], r: d[4], stride: d[5], pad: d[6]}
	w.p, w.q = (w.h+2*w.pad-w.r)/w.stride+1, (w.w+2*w.pad-w.r)/w.stride+1
	return w
}

// each calls f for every output element and every element of its window inside the image. to and
// from are their indices; at is the position in the window.
func (w windows) each(f func(to, from, at int)) {
	for to := range w.n * w.p * w.q * w.c {
		c, q, p, n := to%w.c, to/w.c%w.q, to/w.c/w.q%w.p, to/w.c/w.q/w.p
		for at := range w.r * w.r {
			h, v := p*w.stride-w.pad+at/w.r, q*w.stride-w.pad+at%w.r
			if h >= 0 && h < w.h && v >= 0 && v < w.w {
				f(to, ((n*w.h+h)*w.w+v)*w.c+c, at)
			}
		}
	}
}

func interpretMaxPool(c *device.Call, in, out [][]float64) {
	y, at := out[0], out[1]
	for i := range at {
		at[i] = -1
	}
	windowsOf(c).each(func(to, from, position int) {
		x := in[0][from]
		if at[to] < 0 || x > y[to] || math.IsNaN(x) && !math.IsNaN(y[to]) {
			y[to], at[to] = x, float64(position)
		}
	})
}

func interpretMaxPoolGrad(c *device.Call, in, out [][]float64) {
	clear(out[0])
	windowsOf(c).each(func(to, from, position int) {
		if in[1][to] == float64(position) {
			out[0][from] += in[0][to]
		}
	})
}

func interpretAvgPool(c *device.Call, in, out [][]float64) {
	m, cols := c.Dims[1], c.Dims[2]
	clear(out[0])
	for i, x := range in[0] {
		out[0][i/(m*cols)*cols+i%cols] += x
	}
	for i := range out[0] {
		out[0][i] *= 1 / float64(m)
	}
}

func interpretAvgPoolGrad(c *device.Call, in, out [][]float64) {
	m, cols := c.Dims[1], c.Dims[2]
	for i := range out[0] {
		out[0][i] = in[0][i/(m*cols)*cols+i%cols] / float64(m)
	}
}

// poolCalls lists windows that overlap, touch and leave gaps, over images that they do and do not
// fit exactly, with channels around vector widths.
func poolCalls(add func(attr float64, dims ...int)) {
	for i, c := range widths {
		add(0, 1+i%2, 7, 9, c, 3, 2, 1)
		add(0, 1, 4, 5, c, 1+i%3, 1+i%4, i%(1+i%3))
	}
	add(0, 2, 5, 33, 3, 2, 2, 0)
	add(0, 1, 1, 1, 17, 1, 1, 0)
	add(0, 1, 1, 1, 4, 3, 1, 1) // more padding than image
	add(0, 1, 36, 2, 1, 34, 1, 33)
	add(0, 1, 34, 34, 5, 2, 33, 1) // the stride skips most pixels
	add(0, 33, 6, 5, 4, 4, 3, 2)
	add(0, 1, 33, 9, 64, 3, 2, 1)
	add(0, 1, 3, 12, 40, 5, 1, 4)
}

func avgPoolCalls(add func(attr float64, dims ...int)) {
	for i, m := range widths {
		for j, c := range widths {
			add(0, 1+(i+j)%3, m, c)
		}
	}
	add(0, 33, 49, 70)
	add(0, 1, 600, 3)
	add(0, 2, 2, 2100)
}

// poolInputs makes ties, and valid positions of maxima for the gradient.
func poolInputs(c *device.Call, in [][]float32) {
	s := rng.New(6, string(c.Kernel))
	if c.Kernel == device.MaxPool {
		for i := range in[0] {
			in[0][i] = float32(s.IntN(9) - 4)
		}
		return
	}
	w := windowsOf(c)
	x, y, at := make([]float64, w.n*w.h*w.w*w.c), make([]float64, len(in[1])), make([]float64, len(in[1]))
	for i := range x {
		x[i] = s.Norm()
	}
	interpretMaxPool(c, [][]float64{x}, [][]float64{y, at})
	for i, v := range at {
		in[1][i] = float32(v)
	}
}

// maxPoolGradBounds allows one rounding per added number.
func maxPoolGradBounds(c *device.Call, in, b [][]float64) {
	added := make([]float64, len(b[0]))
	windowsOf(c).each(func(to, from, position int) {
		if in[1][to] == float64(position) {
			added[from]++
			b[0][from] += unit * math.Abs(in[0][to])
		}
	})
	for i, n := range added {
		b[0][i] *= n
	}
}

// avgPoolBounds allows one rounding, and the float64 error of the summands.
func avgPoolBounds(c *device.Call, in, want, b [][]float64) {
	m, cols := c.Dims[1], c.Dims[2]
	for i, x := range in[0] {
		b[0][i/(m*cols)*cols+i%cols] += 0x1p-44 * math.Abs(x)
	}
	for i, w := range want[0] {
		b[0][i] += 2*unit*math.Abs(w) + smallest
	}
}
