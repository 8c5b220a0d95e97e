package model

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// geometry describes the window of a kernel over images, besides the shapes of its inputs.
type geometry struct {
	// of the input image, for kernels without that input
	h, w        int
	r, s        int // of the window, for kernels without a filter input
	stride, pad int
}

// windowed is a definition whose shapes and Dims depend on a geometry.
type windowed struct {
	shapes func(in []tensor.Shape, g geometry) ([]tensor.Shape, error)
	dims   func(in []tensor.Shape, g geometry) []int
}

// applyWindow is apply for a kernel with a geometry.
func (b *builder) applyWindow(k device.Kernel, g geometry, in ...*gorgonia.Node) *gorgonia.Node {
	def := *b.kernels[k]
	w := def.window
	def.shapes = func(in []tensor.Shape) ([]tensor.Shape, error) { return w.shapes(in, g) }
	def.dims = func(in []tensor.Shape) []int { return w.dims(in, g) }
	return b.applyAs(&def, g, 0, in...)
}

// out returns the number of positions of a window of that side along an axis of that length.
func (g geometry) out(length, side int) int { return (length+2*g.pad-side)/g.stride + 1 }

// fits checks a window of r×s over an image of h×w.
func (g geometry) fits(h, w, r, s int) error {
	if g.stride < 1 || g.pad < 0 || g.pad >= r || g.pad >= s || r > h+2*g.pad || s > w+2*g.pad {
		return fmt.Errorf("a window of %d×%d, stride %d, padding %d does not fit an image of %d×%d: want stride >= "+
			"1 and padding < window <= padded image",
			r, s, g.stride, g.pad, h, w)
	}
	return nil
}

var (
	convWindow = &windowed{
		func(in []tensor.Shape, g geometry) ([]tensor.Shape, error) {
			x, w := in[0], in[1]
			if x.Dims() != 4 || w.Dims() != 4 || x[3] != w[3] {
				return nil, fmt.Errorf("x %v and W %v do not fit: want x n×h×w×c, W k×r×s×c", x, w)
			}
			if err := g.fits(x[1], x[2], w[1], w[2]); err != nil {
				return nil, err
			}
			return []tensor.Shape{{x[0], g.out(x[1], w[1]), g.out(x[2], w[2]), w[0]}}, nil
		},
		func(in []tensor.Shape, g geometry) []int {
			x, w := in[0], in[1]
			return []int{x[0], x[1], x[2], x[3], w[0], w[1], w[2], g.stride, g.pad}
		},
	}
	convGradXWindow = &windowed{
		func(in []tensor.Shape, g geometry) ([]tensor.Shape, error) {
			dy, w := in[0], in[1]
			if dy.Dims() != 4 || w.Dims() != 4 || dy[3] != w[0] || dy[1] != g.out(g.h, w[1]) ||
				dy[2] != g.out(g.w, w[2]) {
				return nil, fmt.Errorf("dy %v and W %v do not fit an image of %d×%d: want dy n×p×q×k, W k×r×s×c", dy, w,
					g.h, g.w)
			}
			return []tensor.Shape{{dy[0], g.h, g.w, w[3]}}, nil
		},
		func(in []tensor.Shape, g geometry) []int {
			dy, w := in[0], in[1]
			return []int{dy[0], g.h, g.w, w[3], w[0], w[1], w[2], g.stride, g.pad}
		},
	}
	// Stride and padding determine the filter's height and width only up to a remainder, so the
	// geometry holds them.
	convGradWWindow = &windowed{
		func(in []tensor.Shape, g geometry) ([]tensor.Shape, error) {
			x, dy := in[0], in[1]
			if x.Dims() != 4 || dy.Dims() != 4 || x[0] != dy[0] || dy[1] != g.out(x[1], g.r) ||
				dy[2] != g.out(x[2], g.s) {
				return nil, fmt.Errorf("x %v and dy %v do not fit a window of %d×%d: want x n×h×w×c, dy n×p×q×k", x, dy,
					g.r, g.s)
			}
			return []tensor.Shape{{dy[3], g.r, g.s, x[3]}}, nil
		},
		func(in []tensor.Shape, g geometry) []int {
			x, dy := in[0], in[1]
			return []int{x[0], x[1], x[2], x[3], dy[3], g.r, g.s, g.stride, g.pad}
		},
	}
	maxPoolWindow = &windowed{
		func(in []tensor.Shape, g geometry) ([]tensor.Shape, error) {
			x := in[0]
			if x.Dims() != 4 {
				return nil, fmt.Errorf("x has shape %v: want n×h×w×c", x)
			}
			if err := g.fits(x[1], x[2], g.r, g.s); err != nil {
				return nil, err
			}
			y := tensor.Shape{x[0], g.out(x[1], g.r), g.out(x[2], g.s), x[3]}
			return []tensor.Shape{y, y.Clone()}, nil
		},
		func(in []tensor.Shape, g geometry) []int {
			x := in[0]
			return []int{x[0], x[1], x[2], x[3], g.r, g.stride, g.pad}
		},
	}
	maxPoolGradWindow = &windowed{
		func(in []tensor.Shape, g geometry) ([]tensor.Shape, error) {
			dy, at := in[0], in[1]
			if dy.Dims() != 4 || !slices.Equal(dy, at) || dy[1] != g.out(g.h, g.r) || dy[2] != g.out(g.w, g.s) {
				return nil, fmt.Errorf("dy %v and positions %v do not fit an image of %d×%d: want both n×p×q×c", dy, at,
					g.h, g.w)
			}
			return []tensor.Shape{{dy[0], g.h, g.w, dy[3]}}, nil
		},
		func(in []tensor.Shape, g geometry) []int {
			dy := in[0]
			return []int{dy[0], g.h, g.w, dy[3], g.r, g.stride, g.pad}
		},
	}
	avgPoolWindow = &windowed{
		func(in []tensor.Shape, _ geometry) ([]tensor.Shape, error) {
			x := in[0]
			if x.Dims() != 4 {
				return nil, fmt.Errorf("x has shape %v: want n×h×w×c", x)
			}
			return []tensor.Shape{{x[0], x[3]}}, nil
		},
		func(in []tensor.Shape, _ geometry) []int {
			x := in[0]
			return []int{x[0], x[1] * x[2], x[3]}
		},
	}
	avgPoolGradWindow = &windowed{
		func(in []tensor.Shape, g geometry) ([]tensor.Shape, error) {
			dy := in[0]
			if dy.Dims() != 2 {
				return nil, fmt.Errorf("dy has shape %v: want n×c", dy)
			}
			return []tensor.Shape{{dy[0], g.h, g.w, dy[1]}}, nil
		},
		func(in []tensor.Shape, g geometry) []int {
			dy := in[0]
			return []int{dy[0], g.h * g.w, dy[1]}
		},
	}
)

func convDerivative(d derivation, grads gorgonia.Nodes) {
	x, w, g := d.in[0], d.in[1], d.op.geometry
	g.h, g.w, g.r, g.s = x.Shape()[1], x.Shape()[2], w.Shape()[1], w.Shape()[2]
	if d.op.wanted[0] {
		grads[0] = d.b.applyWindow(device.ConvGradX, g, d.grad, w)
	}
	if d.op.wanted[1] {
		grads[1] = d.b.applyWindow(device.ConvGradW, g, x, d.grad)
	}
}

func maxPoolDerivative(d derivation, grads gorgonia.Nodes) {
	g := d.op.geometry
	g.h, g.w = d.in[0].Shape()[1], d.in[0].Shape()[2]
	grads[0] = d.b.applyWindow(device.MaxPoolGrad, g, d.grad, d.b.project(d.out, 1))
}

func avgPoolDerivative(d derivation, grads gorgonia.Nodes) {
	g := geometry{h: d.in[0].Shape()[1], w: d.in[0].Shape()[2]}
	grads[0] = d.b.applyWindow(device.AvgPoolGrad, g, d.grad)
}
