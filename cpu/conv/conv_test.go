package conv

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu/gemm"
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/testing/kerneltest"
)

// convDims are n h w c k r s stride pad: filters of every kind, sizes around the registers, runs of
// products that are cut and ones that are combined, images that are computed in parts and together,
// weights that are packed piece by piece.
var convDims = [][]int{
	{1, 1, 1, 1, 1, 1, 1, 1, 0},
	{1, 3, 3, 2, 3, 3, 3, 1, 1},
	{2, 5, 4, 3, 2, 3, 3, 1, 1},
	{3, 7, 7, 17, 33, 3, 3, 1, 1}, // two rows of seven in one tile
	{1, 5, 6, 4, 18, 3, 3, 1, 1},
	{2, 4, 4, 16, 31, 3, 3, 1, 1},
	{2, 9, 9, 16, 16, 3, 3, 2, 1},
	{1, 7, 2, 5, 9, 3, 3, 2, 1},
	{1, 6, 29, 3, 9, 7, 7, 2, 3},
	{1, 13, 30, 3, 16, 5, 3, 3, 2},
	{2, 9, 8, 16, 40, 1, 1, 2, 0},
	{1, 5, 3, 512, 7, 1, 1, 2, 0}, // columns of a block are padded
	{2, 5, 5, 32, 17, 1, 1, 1, 0},
	{1, 4, 5, 6, 7, 1, 1, 3, 0}, // pixels that no output reads
	{1, 4, 4, 3, 2, 2, 2, 3, 0},
	{1, 2, 5, 3, 2, 2, 2, 4, 1},
	{1, 5, 6, 4, 5, 2, 3, 1, 1},
	{2, 3, 3, 9, 8, 3, 3, 1, 0},
	{1, 3, 40, 2, 3, 1, 4, 2, 0},
	{1, 40, 3, 2, 3, 4, 1, 2, 0},
	{1, 3, 3, 150, 5, 3, 3, 1, 1}, // a run of 450
	{1, 2, 3, 4, 150, 3, 3, 1, 1},
	{1, 2, 2, 800, 3, 2, 1, 1, 0},
	{1, 2, 3, 33, 410, 2, 2, 1, 1},
	{1, 2, 900, 1, 2, 1, 2, 1, 0}, // rows of more pixels than a chunk takes
	{1, 45, 20, 2, 5, 3, 3, 1, 1}, // images of more
	{9, 9, 9, 3, 20, 3, 3, 1, 1},
	{1, 41, 40, 64, 3, 3, 3, 1, 1},      // two blocks
	{1, 160, 100, 64, 290, 3, 3, 12, 1}, // many weights, two blocks
	{2, 4, 5, 130, 260, 3, 3, 1, 1},
	{1, 6, 5, 3, 300, 3, 2, 1, 1},
	{2, 2, 2, 1024, 70, 1, 1, 1, 0}, // columns of the block and rows of dy a page apart
	{2, 2, 2, 1024, 66, 2, 2, 1, 1},
	{1, 2, 3, 130, 1024, 1, 1, 1, 0},
	{3, 2, 2, 64, 1024, 2, 2, 1, 1},
}

// convCall is a call with its operands.
type convCall struct {
	device.Call
	in, out [][]float32
}

func newConvCall(k device.Kernel, dims []int) *convCall {
	c := &convCall{Call: device.Call{Kernel: k, Dims: dims}}
	e := signature.Of(k)
	for i, shape := range e.In {
		c.in = append(c.in, kerneltest.Noise(fmt.Sprint(k, i), e.Size(shape, dims)))
	}
	c.out = [][]float32{make([]float32, e.Size(e.Out[0], dims))}
	return c
}

// run runs the kernel with scratch memory of NaN.
func (c *convCall) run() error {
	_, err := signature.Find(&c.Call)
	if err != nil {
		return err
	}
	scratch := kernel.Aligned(Kernels.Scratch(&c.Call, 1))
	for i := range scratch {
		scratch[i] = float32(math.NaN())
	}
	return Kernels[c.Kernel].Run(&kernel.Args{In: c.in, Out: c.out, Dims: c.Dims, Scratch: scratch})
}

// chunked adds products chunk by chunk: cuts holds the number of products of each chunk.
func chunked(products [][2]float32, cuts []int) float32 {
	var y float32
	for i, n := range cuts {
		s := 0.0
		for _, p := range products[:n] {
			s = tile.FMA(float64(p[0]), float64(p[1]), s)
		}
		if products = products[n:]; i == 0 {
			y = float32(s)
		} else {
			y += float32(s)
		}
	}
	return y
}

// cutRuns returns the number of products of each chunk of so many runs.
func cutRuns(run, runs int) (cuts []int) {
	for left := runs; left > 0; {
		n := min(left, max(1, tile.Depth/run))
		left -= n
		all := n * run
		for pieces := (all + tile.Depth - 1) / tile.Depth; pieces > 0; pieces-- {
			cuts = append(cuts, (all+pieces-1)/pieces)
			all -= cuts[len(cuts)-1]
		}
	}
	return cuts
}

// cutPixels returns the number of products of each chunk of the weight gradient.
func cutPixels(n, p, q int) (cuts []int) {
	deal := func(all, most int) {
		for parts := (all + most - 1) / most; parts > 0; parts-- {
			cuts = append(cuts, (all+parts-1)/parts)
			all -= cuts[len(cuts)-1]
		}
	}
	if p*q <= maxPixels {
		deal(n, maxPixels/(p*q))
		for i := range cuts {
			cuts[i] *= p * q
		}
		return cuts
	}
	for range n {
		if q <= maxPixels {
			from := len(cuts)
			deal(p, maxPixels/q)
			for i := range cuts[from:] {
				cuts[from+i] *= q
			}
			continue
		}
		for range p {
			deal(q, maxPixels)
		}
	}
	return cuts
}

// defined computes what the doc of convolution says, element by element.
func (c *convCall) defined() []float32 {
	d, want := c.Dims, make([]float32, len(c.out[0]))
	n, h, w, ch, k, r, s, stride, pad := d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8]
	p, q := (h+2*pad-r)/stride+1, (w+2*pad-s)/stride+1
	image := func(v []float32, n, i, j, c, rows, cols, deep int) float32 {
		if i < 0 || i >= rows || j < 0 || j >= cols {
			return 0
		}
		return v[((n*rows+i)*cols+j)*deep+c]
	}
	for at := range want {
		var products [][2]float32
		var cuts []int
		switch c.Kernel {
		case device.Conv:
			f, j, i, b := at%k, at/k%q, at/(k*q)%p, at/(k*q*p)
			for t := range r * s * ch {
				x := image(c.in[0], b, i*stride-pad+t/(s*ch), j*stride-pad+t/ch%s, t%ch, h, w, ch)
				products = append(products, [2]float32{x, c.in[1][f*r*s*ch+t]})
			}
			cuts = cutRuns(s*ch, r)
		case device.ConvGradX:
			f, j, i, b := at%ch, at/ch%w, at/(ch*w)%h, at/(ch*w*h)
			runs := 0
			for ri := r - 1; ri >= 0; ri-- {
				if (i+pad-ri)%stride != 0 {
					continue
				}
				runs++
				for sj := s - 1; sj >= 0; sj-- {
					if (j+pad-sj)%stride != 0 {
						continue
					}
					for l := range k {
						dy := image(c.in[0], b, (i+pad-ri)/stride, (j+pad-sj)/stride, l, p, q, k)
						if i+pad < ri || j+pad < sj {
							dy = 0
						}
						products = append(products, [2]float32{dy, c.in[1][((l*r+ri)*s+sj)*ch+f]})
					}
				}
			}
			if len(products) > 0 {
				cuts = cutRuns(len(products)/runs, runs)
			}
		case device.ConvGradW:
			l, sj, ri, f := at%ch, at/ch%s, at/(ch*s)%r, at/(ch*s*r)
			for t := range n * p * q {
				b, i, j := t/(p*q), t/q%p, t%q
				products = append(products, [2]float32{c.in[1][t*k+f], image(c.in[0], b, i*stride-pad+ri,
					j*stride-pad+sj, l, h, w, ch)})
			}
			cuts = cutPixels(n, p, q)
		}
		want[at] = chunked(products, cuts)
	}
	return want
}

// Every element is as defined.
func TestConvDefined(t *testing.T) {
	for _, dims := range convDims {
		for _, k := range directions {
			c := newConvCall(k, dims)
			if work := dims[0] * dims[1] * dims[2] * dims[3] * dims[4] * dims[5] * dims[6] / dims[7]; work > 1e6 {
				continue
			}
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
			kerneltest.Compare(t, fmt.Sprint(k, dims), c.out[0], c.defined())
		}
	}
}

// A convolution that is a matrix product is bit-identical to one.
func TestConvIsProduct(t *testing.T) {
	dims := []int{2, 3, 5, 401, 400, 1, 1, 1, 0}
	pixels, in, out := 30, dims[3], dims[4]
	c := newConvCall(device.Conv, dims)
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
	want := make([]float32, pixels*out)
	gemm.Multiply(false, true, pixels, out, in, 1, c.in[0], in, c.in[1], in, 0, want, out)
	kerneltest.Compare(t, "conv", c.out[0], want)
	c = newConvCall(device.ConvGradX, dims)
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
	want = make([]float32, pixels*in)
	gemm.Multiply(false, false, pixels, in, out, 1, c.in[0], out, c.in[1], in, 0, want, in)
	kerneltest.Compare(t, "conv-grad-x", c.out[0], want)
}

// Infinities, NaN, denormal and huge inputs affect exactly the outputs that read them.
func TestConvOfSpecials(t *testing.T) {
	for _, dims := range [][]int{{2, 5, 5, 3, 18, 3, 3, 1, 1}, {1, 9, 7, 2, 5, 3, 3, 2, 1},
		{1, 4, 4, 17, 3, 1, 1, 2, 0}} {
		for _, k := range directions {
			for _, special := range []float32{float32(math.Inf(1)), float32(math.NaN()), 0x1p-149, 0x1p127,
				float32(math.Copysign(0, -1))} {
				for i := range 2 {
					c := newConvCall(k, dims)
					for at := 0; at < len(c.in[i]); at += 7 {
						c.in[i][at] = special
					}
					if err := c.run(); err != nil {
						t.Fatal(err)
					}
					kerneltest.Compare(t, fmt.Sprint(k, dims, special), c.out[0], c.defined())
				}
			}
		}
	}
}

// Products that are denormal.
func TestConvDenormals(t *testing.T) {
	for _, k := range directions {
		c := newConvCall(k, []int{1, 6, 5, 3, 18, 3, 3, 1, 1})
		for i, by := range []float32{0x1p-100, 0x1p-40} {
			for j := range c.in[i] {
				c.in[i][j] *= by
			}
		}
		if err := c.run(); err != nil {
			t.Fatal(err)
		}
		kerneltest.Compare(t, string(k), c.out[0], c.defined())
	}
}

// A convolution allocates nothing if it is given its scratch memory.
func TestConvAllocatesNothing(t *testing.T) {
	for _, k := range directions {
		for _, dims := range [][]int{{2, 8, 8, 16, 16, 3, 3, 1, 1}, {1, 9, 9, 3, 16, 3, 3, 2, 1}} {
			c := newConvCall(k, dims)
			o := kernel.Args{In: c.in, Out: c.out, Dims: dims, Scratch: kernel.Aligned(Kernels.Scratch(&c.Call, 1))}
			run := Kernels[k].Run
			if n := testing.AllocsPerRun(3, func() {
				if err := run(&o); err != nil {
					t.Fatal(err)
				}
			}); n != 0 && !kerneltest.Race {
				t.Errorf("%s %v allocates %v times", k, dims, n)
			}
		}
	}
}
