package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/device"
)

// Kernels are the convolution and its gradients.
var Kernels = kernel.Table{
	device.Conv:      {Run: inParts(conv), Scratch: convScratch},
	device.ConvGradX: {Run: inParts(convGradX), Scratch: convGradXScratch},
	device.ConvGradW: {Run: inParts(convGradW), Scratch: convGradWScratch},
}

// convolution is the geometry of a convolution. Images and filters have their channels last, so
// that one row of a filter covers one contiguous run of numbers of an image (correlation.go).
//
// Every element is defined to the last bit, as in package gemm: it is the sum of chunks in
// ascending order, each of them
//
//	s = +0;  s = fma(a, b, s) for the products of the chunk in ascending order
//
// where fma rounds once; the first chunk is stored, and each other is added to it and the sum
// rounded. The products and their division into chunks depend on the dimensions only:
//
//   - y[n,i,j,k] has the products x[n, i·stride+r−pad, j·stride+s−pad, c]·W[k,r,s,c] in the order
//     of (r,s,c), including those where x is a zero of the padding: an infinite weight makes them
//     NaN. A row of the filter is a run of s·c products. A chunk is as many whole runs as fit into
//     tile.Depth products, or, if not even one fits, a part of a run, cut as in package gemm.
//   - dx[n,i,j,c] has the products dy[n,u,v,k]·W[k,r,s,c] of the taps with i+pad = u·stride+r and
//     j+pad = v·stride+s, in the order of (u,v,k) from the smallest u and v; dy is zero outside of
//     the output. A row of such taps is a run, cut likewise. A pixel without taps is +0.
//   - dW[k,r,s,c] has the products dy[n,i,j,k]·x[…] in the order of (n,i,j). A chunk is as many
//     whole images as fit into maxPixels pixels of the output, or as many whole rows of one image,
//     or, if not even a row fits, a part of one; the sizes of all chunks of such a division differ
//     by one at most, the larger first.
//
// So a 1×1 convolution without stride and padding, and its data gradient, are defined as in package
// gemm.
type convolution struct {
	n, h, w, c, k, r, s, stride, pad int
	p, q                             int // height and width of the output
	kind                             tile.Kind
	half                             kernel.Halves // operands of 16 bits
}

func convolutionOf(dims []int) convolution {
	v := convolution{n: dims[0], h: dims[1], w: dims[2], c: dims[3], k: dims[4], r: dims[5], s: dims[6],
		stride: dims[7], pad: dims[8]}
	v.p = (v.h+2*v.pad-v.r)/v.stride + 1
	v.q = (v.w+2*v.pad-v.s)/v.stride + 1
	return v
}

// inParts returns a kernel that divides a convolution among the workers.
func inParts(run func(v convolution, o *kernel.Args, part, of int)) func(*kernel.Args) error {
	part := func(o *kernel.Args, part, of int) {
		run(convolutionOf(o.Dims), o, part, of)
	}
	return func(o *kernel.Args) error {
		v := convolutionOf(o.Dims)
		o.Parallel(v.parallelParts(o.Threads()), part)
		return nil
	}
}

// conv: y = x ⋆ W.
func conv(v convolution, o *kernel.Args, part, of int) {
	l, reads := v.forward().part(part, of)
	if l.p == 0 { // fewer rows than parts
		return
	}
	correlate(&l, o.In[0][reads:], o.In[1], o.Out[0], o.ScratchPart(part, of))
}

// convGradX computes dx of y = x ⋆ W.
func convGradX(v convolution, o *kernel.Args, part, of int) {
	dy, w, dx := o.In[0], o.In[1], o.Out[0]
	for i := range v.stride {
		for j := range v.stride {
			l, reads := v.backward(i, j).part(part, of)
			switch {
			case l.p <= 0 || l.q <= 0:
			case l.r == 0 || l.s == 0:
				l.clear(dx)
			default:
				correlate(&l, dy[reads:], w, dx, o.ScratchPart(part, of))
			}
		}
	}
}

// convGradW computes dW of y = x ⋆ W.
func convGradW(v convolution, o *kernel.Args, part, of int) {
	weightGradient(&v, o.In[0], o.In[1], o.Out[0], o.ScratchPart(part, of), part, of)
}
