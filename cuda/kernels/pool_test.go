package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
)

func TestMaxPool(t *testing.T) {
	h := onHost(t)
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		for _, g := range []kernels.Pool{
			{Images: 2, H: 12, W: 9, C: 16, R: 3, Stride: 2, Pad: 1}, {Images: 1, H: 7, W: 8, C: 5, R: 2,
				Stride: 2}, {Images: 1, H: 5, W: 5, C: 8, R: 3, Stride: 1, Pad: 1},
			{Images: 3, H: 6, W: 6, C: 3, R: 2, Stride: 3, Pad: 1},
		} {
			g.Element = e
			t.Run(fmt.Sprintf("%v", g), func(t *testing.T) { comparePool(t, h, g) })
		}
	}
}

// Images that exceed one grid dimension are distributed over two.
func TestPoolOfManyImages(t *testing.T) {
	for _, images := range []int{1, 65535, 65536, 200001} {
		l := kernels.Pool{Images: images, H: 2, W: 2, C: 8, R: 2, Stride: 2}.Max(0, 0, 0).Launch
		if blocks := int(l.Grid[1] * l.Grid[2]); l.Grid[0] != 1 || l.Grid[1] > 65535 || blocks < images ||
			blocks >= images+65535 {
			t.Errorf("%d images: a grid of %v blocks", images, l.Grid)
		}
	}
}

func comparePool(t *testing.T, h *host, g kernels.Pool) {
	in, out := g.Images*g.H*g.W*g.C, g.Images*g.P()*g.Q()*g.C
	x, dy := numbers(1, in), numbers(2, out)
	x[3], x[in/2] = float32(math.NaN()), float32(math.Inf(-1))
	for i := 10; i < in; i += 9 {
		x[i] = x[i-1] // ties
	}
	rawX, x := encode(h, g.Element, x)
	rawDY, dy := encode(h, g.Element, dy)
	indexSize := 1
	if g.Element == kernels.F32 {
		indexSize = 4
	}
	y, indices, dx := make([]byte, out*g.Element.Size()), make([]byte, out*indexSize), make([]byte, len(rawX))
	h.run(g.Max(at(h, y), at(h, indices), at(h, rawX)), g.MaxGrad(at(h, dx), at(h, rawDY), at(h, indices)))
	comparePooledNorm(t, h, g, rawX)

	dims := []int{g.Images, g.H, g.W, g.C, g.R, g.Stride, g.Pad}
	wantY, wantAt, wantDX := make([]float32, out), make([]float32, out), make([]float32, in)
	onCPUCall(t, device.MaxPool, dims, 0, [][]float32{x}, [][]float32{wantY, wantAt})
	onCPUCall(t, device.MaxPoolGrad, dims, 0, [][]float32{dy, wantAt}, [][]float32{wantDX})
	sameBits(t, "maximum", decode(h, g.Element, y), wantY)
	gotAt := make([]float32, out)
	if indexSize == 4 {
		gotAt = decode(h, kernels.F32, indices)
	} else {
		for i, p := range indices {
			gotAt[i] = float32(p)
		}
	}
	sameBits(t, "index", gotAt, wantAt)
	_, wantDX = encode(h, g.Element, wantDX) // sums are rounded once
	sameBits(t, "gradient", decode(h, g.Element, dx), wantDX)
}

func TestAvgPool(t *testing.T) {
	h := onHost(t)
	const images, m = 3, 49
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		for _, c := range []int{16, 5} {
			rawX, x := encode(h, e, numbers(1, images*m*c))
			rawDY, dy := encode(h, e, numbers(2, images*c))
			y, dx := make([]byte, len(rawDY)), make([]byte, len(rawX))
			h.run(kernels.AvgPool(e, at(h, y), at(h, rawX), images, m, c), kernels.AvgPoolGrad(e, at(h, dx),
				at(h, rawDY), images, m, c))
			wantY, wantDX := make([]float32, images*c), make([]float32, images*m*c)
			onCPUCall(t, device.AvgPool, []int{images, m, c}, 0, [][]float32{x}, [][]float32{wantY})
			onCPUCall(t, device.AvgPoolGrad, []int{images, m, c}, 0, [][]float32{dy}, [][]float32{wantDX})
			_, wantY = encode(h, e, wantY)
			_, wantDX = encode(h, e, wantDX)
			sameBits(t, "mean", decode(h, e, y), wantY)
			sameBits(t, "gradient", decode(h, e, dx), wantDX)
		}
	}
}

// comparePooledNorm compares the maxima of a normalisation with ReLU with the maxima of its stored
// output.
func comparePooledNorm(t *testing.T, h *host, g kernels.Pool, x []byte) {
	t.Helper()
	mean, scale, shift := numbers(3, g.C), numbers(4, g.C), numbers(5, g.C)
	n := kernels.Norm{Element: g.Element, M: g.Images * g.H * g.W, C: g.C, Epilogue: kernels.ReLU, X: at(h, x)}
	n.Mean, n.Scale, n.Shift = at(h, mean), at(h, scale), at(h, shift)
	between := make([]byte, len(x))
	n.Y = at(h, between)
	out := g.Images * g.P() * g.Q() * g.C
	var y, indices [2][]byte
	for i := range y {
		y[i], indices[i] = make([]byte, out*g.Element.Size()), make([]byte, 4*out)
	}
	h.run(n.Apply(), g.Max(at(h, y[0]), at(h, indices[0]), n.Y),
		g.MaxOfNorm(at(h, y[1]), at(h, indices[1]), n.X, n.Mean, n.Scale, n.Shift))
	if !bytes.Equal(y[0], y[1]) || !bytes.Equal(indices[0], indices[1]) {
		t.Errorf("%v: the maxima of a normalisation differ from those of its output", g)
	}
}
