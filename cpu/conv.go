package cpu

import "fspda/device"

// convKernels are the convolution and its gradients.
var convKernels = table{
	device.Conv:      {conv, convScratch},
	device.ConvGradX: {convGradX, convGradXScratch},
	device.ConvGradW: {convGradW, convGradWScratch},
}

// conv, convGradX and convGradW are the convolution and its two gradients. Images have their
// channels last, and so have filters, so that what one row of a filter sees of an image is one run
// of numbers that lie side by side (conv_slide.go).
//
// Every element is defined to the last bit, as in gemm: it is the sum of chunks in ascending order,
// each of them
//
//	s = +0;  s = fma(a, b, s) for the products of the chunk in ascending order
//
// where fma rounds once; the first chunk is stored, the others are added to what is stored, and
// that is rounded. Which products there are and how they are cut into chunks depends on the
// dimensions alone:
//
//   - y[n,i,j,k] has the products x[n, i·stride+r−pad, j·stride+s−pad, c]·W[k,r,s,c] in the order of (r,s,c), those included where x is a zero
//     of the padding: an infinite weight makes them NaN. A row of the filter is a run of s·c products. A chunk is as many whole runs as fit into
//     gemmDepth products, or, where not even one fits, a part of a run, cut as gemm cuts its products.
//   - dx[n,i,j,c] has the products dy[n,u,v,k]·W[k,r,s,c] of the taps with i+pad = u·stride+r and j+pad = v·stride+s, in the order of (u,v,k)
//     from the smallest u and v; dy is zero outside of the output. A row of such taps is a run, cut likewise. A pixel without taps is +0.
//   - dW[k,r,s,c] has the products dy[n,i,j,k]·x[…] in the order of (n,i,j). A chunk is as many whole images as fit into convPixels
//     pixels of the output, or whole rows of one image, or where not even a row fits a part of one; all chunks of such a division are
//     of the same size or one smaller, the larger first.
//
// So a 1×1 convolution without stride and padding, and its data gradient, are defined as gemm is.
type convolution struct {
	n, h, w, c, k, r, s, stride, pad int
	p, q                             int // height and width of the output
}

func convolutionOf(dims []int) convolution {
	v := convolution{dims[0], dims[1], dims[2], dims[3], dims[4], dims[5], dims[6], dims[7], dims[8], 0, 0}
	v.p = (v.h+2*v.pad-v.r)/v.stride + 1
	v.q = (v.w+2*v.pad-v.s)/v.stride + 1
	return v
}

// conv: y = x ⋆ W.
func conv(o *operands) error {
	v := convolutionOf(o.dims)
	o.parallel(v.parallelism(o.threads()), convPart)
	return nil
}

func convPart(o *operands, part, of int) {
	v := convolutionOf(o.dims)
	l, reads := v.forward().part(part, of)
	if l.p == 0 { // fewer rows than parts
		return
	}
	slideOver(&l, o.in[0][reads:], o.in[1], o.out[0], o.room(part, of))
}

// convGradX: dx of y = x ⋆ W.
func convGradX(o *operands) error {
	v := convolutionOf(o.dims)
	o.parallel(v.parallelism(o.threads()), convGradXPart)
	return nil
}

func convGradXPart(o *operands, part, of int) {
	v := convolutionOf(o.dims)
	dy, w, dx := o.in[0], o.in[1], o.out[0]
	for i := range v.stride {
		for j := range v.stride {
			l, reads := v.backward(i, j).part(part, of)
			switch {
			case l.p <= 0 || l.q <= 0:
			case l.r == 0 || l.s == 0:
				l.clear(dx)
			default:
				slideOver(&l, dy[reads:], w, dx, o.room(part, of))
			}
		}
	}
}

// convGradW: dW of y = x ⋆ W.
func convGradW(o *operands) error {
	v := convolutionOf(o.dims)
	o.parallel(v.parallelism(o.threads()), convGradWPart)
	return nil
}

func convGradWPart(o *operands, part, of int) {
	v := convolutionOf(o.dims)
	sumOver(&v, o.in[0], o.in[1], o.out[0], o.room(part, of), part, of)
}
