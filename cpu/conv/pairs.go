package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/device"
)

// PairKernels are the kernels of Kernels with factors that are rounded to bfloat16. Sums and
// results are float32. Every element is defined to the last bit, as in Kernels, with pairs of
// products in place of products:
//
//   - y and dx: of two neighbouring channels of x or dy, which must have an even number of them;
//   - dW: of two neighbouring pixels of a row of dy, in each chunk, with a zero behind an odd
//     number.
//
// The factors are first written to scratch memory as pairs. Images of pairs are convolved as images
// of numbers are, with half as many channels. Convolutions that do not fit, or whose numbers are
// multiplied rarely, have factors of float32: that depends on their dimensions only.
var PairKernels = kernel.Table{
	device.Conv:      pairKernel(device.Conv, convolution.forwardPairs, narrowForward, conv),
	device.ConvGradX: pairKernel(device.ConvGradX, convolution.backwardPairs, narrowBackward, convGradX),
	device.ConvGradW: pairKernel(device.ConvGradW, convolution.weightPairs, nil, convGradW),
}

// pairKernel returns a kernel on pairs. of returns the convolution of pairs, and how many pairs of
// images and of weights lie in scratch memory; narrow writes a part of them.
func pairKernel(name device.Kernel, of func(convolution) (v convolution, images, weights int, ok bool),
	narrow func(o *kernel.Args, v *convolution, images, weights []float32, part, of int),
	run func(v convolution, o *kernel.Args, part, of int)) kernel.Kernel {
	scratch := map[device.Kernel]func(v convolution, threads int) int{device.Conv: forwardScratch,
		device.ConvGradX: backwardScratch, device.ConvGradW: gradientScratch}[name]
	convolutionOf := func(dims []int, half kernel.Halves) (p convolution, images, weights int, ok bool) {
		v := convolutionOf(dims)
		v.half = half
		if p, images, weights, ok = of(v); !ok {
			return v, 0, 0, false
		}
		return p, kernel.Padded(images), kernel.Padded(weights), true
	}
	split := func(o *kernel.Args) (v convolution, images, weights, rest []float32) {
		v, m, n, _ := convolutionOf(o.Dims, o.Half)
		return v, o.Scratch[:m], o.Scratch[m:][:n], o.Scratch[m+n:]
	}
	prepare := func(o *kernel.Args, part, of int) {
		v, images, weights, _ := split(o)
		narrow(o, &v, images, weights, part, of)
	}
	compute := func(o *kernel.Args, part, of int) {
		v, images, weights, rest := split(o)
		pairs := *o
		pairs.Scratch = rest
		if in := [2][]float32{images, weights}; narrow != nil && len(images) > 0 {
			if o.Half.Input(0) {
				in[0] = o.In[0]
			}
			pairs.In = in[:]
		}
		run(v, &pairs, part, of)
	}
	half := halves(name, of)
	return kernel.Kernel{
		Half: half,
		Scratch: func(dims []int, threads int) int {
			v, images, weights, _ := convolutionOf(dims, half(dims))
			return images + weights + scratch(v, threads)
		},
		Run: func(o *kernel.Args) error {
			p, images, weights, ok := convolutionOf(o.Dims, o.Half)
			if ok && narrow != nil {
				o.Parallel(max(1, min(o.Threads(), (images+weights)/(16<<10))), prepare)
			}
			o.Parallel(p.parallelParts(o.Threads()), compute)
			return nil
		}}
}

// halves returns a function of the operands that may have 16 bits: images with pairs of channels,
// which are read only if they are factors of pairs.
func halves(name device.Kernel, of func(convolution) (v convolution, images, weights int, ok bool)) func(
	dims []int) kernel.Halves {
	return func(dims []int) (h kernel.Halves) {
		v := convolutionOf(dims)
		_, _, _, ok := of(v)
		switch {
		case name == device.ConvGradW && ok && v.c%2 == 0 && v.k%2 == 0:
			h.In = 1 | 2
		case name != device.ConvGradW && ok:
			h.In = 1
		}
		if name == device.Conv && v.k%2 == 0 || name == device.ConvGradX && v.c%2 == 0 {
			h.Out = 1
		}
		return h
	}
}

// worthRounding reports whether the numbers that are rounded are multiplied often enough.
func (v *convolution) worthRounding(numbers int) bool {
	const least = 16 // times in the mean
	return v.n*v.p*v.q*v.k*v.r*v.s*v.c >= least*numbers
}

// setKind sets the kind of pairs. Sums of tiles begin anew with every row of the filter that does
// not fill them, so that such convolutions have the other kind.
func (v *convolution) setKind(run, rows int) {
	const whole = 16
	v.kind = tile.Pairs
	if run%whole != 0 && rows > 1 && 2*run <= tile.Depth {
		v.kind = tile.Dots
	}
}

// fast reports whether products of the kind are faster than of float32 numbers.
func (v *convolution) fast() bool { return v.kind != tile.Dots || !tile.Tiles() }

// readsRows reports whether the micro-kernels read dy along its pixels, so that it is transposed.
func (v *convolution) readsRows() bool {
	s := v.kind.Set()
	return s != nil && s.RowsOnly
}

// forwardPairs returns y = x ⋆ W of pairs of channels.
func (v convolution) forwardPairs() (p convolution, images, weights int, ok bool) {
	images, weights = v.n*v.h*v.w*v.c/2, v.k*v.r*v.s*v.c/2
	p = v
	p.c /= 2
	p.setKind(p.s*p.c, p.r)
	return p, images, weights, v.c%2 == 0 && p.fast() && v.worthRounding(2*(images+weights))
}

func narrowForward(o *kernel.Args, _ *convolution, images, weights []float32, part, of int) {
	narrowImages(o, images, part, of)
	narrowPart(weights, o.In[1], part, of)
}

// narrowImages writes a part of the pairs of the images, unless they are pairs already.
func narrowImages(o *kernel.Args, images []float32, part, of int) {
	if !o.Half.Input(0) {
		narrowPart(images, o.In[0], part, of)
	}
}

func narrowPart(to, from []float32, part, of int) {
	first, end := kernel.SplitUnits(part, of, len(from)/2, kernel.LineFloats)
	tile.Narrow(to[first:], from[2*first:2*end])
}

// backwardPairs returns dx of pairs of channels of dy.
func (v convolution) backwardPairs() (p convolution, images, weights int, ok bool) {
	images, weights = v.n*v.p*v.q*v.k/2, v.k*v.r*v.s*v.c/2
	p = v
	p.k /= 2
	p.setKind(p.k, v.r*v.s)
	return p, images, weights, v.k%2 == 0 && p.fast() && v.worthRounding(2*(images+weights))
}

func narrowBackward(o *kernel.Args, v *convolution, images, weights []float32, part, of int) {
	narrowImages(o, images, part, of)
	size := v.r * v.s * v.c
	first, end := kernel.SplitUnits(part, of, v.k, 1)
	for k := first; k < end; k++ {
		tile.Between(weights[k*size:], o.In[1][2*k*size:][:size], o.In[1][(2*k+1)*size:][:size])
	}
}

// weightPairs returns dW of pairs of pixels, which are made part by part.
func (v convolution) weightPairs() (p convolution, images, weights int, ok bool) {
	p = v
	p.kind = tile.Pairs
	return p, 0, 0, !v.transposesGradient() && v.q > 1 && v.worthRounding(v.n*(v.h*v.w*v.c+v.p*v.q*v.k))
}

func (x pixels) pairs() int { return x.images * x.rows * ((x.cols + 1) / 2) }

// rowOfPairs returns the size of a row of x, before it becomes pairs.
func (v *convolution) rowOfPairs(b *layout) int { return roundUp(b.rowSize+b.colStep*b.colSize, 16) }

// pairRow writes what copyRow does as pairs of each pixel and the one that the next pixel of the
// output reads. Behind the end are zeros.
func (d *weightGrad) pairRow(dst, src []float32, n, i, j, pixels, step, pitch int) {
	half, size, from := d.v.half.Input(0), d.layout.rowSize, d.corr
	if half {
		pitch, size = pitch/2, size/2
		from.channels /= 2
	}
	row := d.row[:pixels*pitch]
	from.copyRow(row, src, n, i, j, pixels, step, pitch)
	apart := d.layout.colStep * pitch
	clear(d.row[len(row):][:apart])
	between(dst, d.row[:size], d.row[apart:][:size], half)
}

// outputs returns the numbers of a pixel of dy, of the outputs that are computed.
func (d *weightGrad) outputs(pixel int) []float32 {
	return d.dy[d.v.gradWords(pixel+d.from):d.v.gradWords(pixel+d.to)]
}

// pairRowsAtOnce is how many rows of pairs of dy are written before they are transposed.
const pairRowsAtOnce = 8

// loadPairs writes the pairs of the part of dy, of the outputs that are computed.
func (d *weightGrad) loadPairs() {
	if d.row == nil {
		return
	}
	to, k := d.packed, d.v.k
	written, rows, outputs := d.packed[d.from*d.pairsApart:], d.packed[k*d.pairsApart:], d.to-d.from
	count := 0 // pairs that are written
	if d.pairsApart > 0 {
		to = rows
	}
	for n := range d.part.images {
		for i := range d.part.rows {
			at := (((d.part.n+n)*d.v.p+d.part.i+i)*d.v.q + d.part.j) * k
			for j := 0; j < d.part.cols; j += 2 {
				pair, next := d.outputs(at+j*k), []float32(nil)
				if j+1 < d.part.cols {
					next = d.outputs(at + (j+1)*k)
				}
				between(to[d.from:], pair, next, d.v.half.Input(1))
				to = to[k:]
				if count++; d.pairsApart > 0 && count%pairRowsAtOnce == 0 {
					tile.PackTransposed(written[count-pairRowsAtOnce:], d.pairsApart,
						tile.RowMajor(rows[d.from:], k), pairRowsAtOnce, outputs)
					to = rows
				}
			}
		}
	}
	if rest := count % pairRowsAtOnce; d.pairsApart > 0 && rest > 0 {
		tile.PackTransposed(written[count-rest:], d.pairsApart, tile.RowMajor(rows[d.from:], k), rest, outputs)
	}
}
