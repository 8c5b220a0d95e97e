package cpu

// slidePlain is a slide in Go: its meaning, and the slide where there is no assembly. The assembly
// gives the same bits.
func slidePlain(l *slide, src, w, out, scratch []float32) {
	all := l.products()
	patches, b := scratch[:plainRows*all], l.plainWeights(w, scratch[plainRows*all:])
	for n := range l.images {
		for i := range l.p {
			for j := 0; j < l.q; j += plainRows {
				rows := min(plainRows, l.q-j)
				for m := range rows {
					l.patch(patches[m*all:], src, n, i, j+m)
				}
				a, c := view{patches, all, 1}, view{out[l.at(n, i, j):], l.pixel, 1}
				for m := range l.chunks() {
					part, before := l.chunk(m)
					for k := 0; k < l.k; k += plainCols {
						plainTile(rows, min(plainCols, l.k-k), part.depth(), 1, a.from(0, before), b.from(before, k),
							betaOf(m), c.from(0, k))
					}
				}
			}
		}
	}
}

// betaOf is the beta of chunk m: the first one overwrites.
func betaOf(m int) float32 {
	if m == 0 {
		return 0
	}
	return 1
}

func slidePlainScratch(l *slide) int {
	n := plainRows * l.products()
	if l.turned {
		n += l.products() * l.k
	}
	return n
}

// patch writes all that a pixel reads.
func (l *slide) patch(dst, src []float32, n, i, j int) {
	run := l.s * l.deep
	for r := range l.r {
		l.copyLine(dst[r*run:], src, n, l.top+i*l.step+r, l.left+j*l.step, l.s, 1, l.deep)
	}
}

// plainWeights returns the weights by product and output, copied to scratch if need be.
func (l *slide) plainWeights(w, scratch []float32) view {
	if !l.turned {
		return view{w, 1, l.products()}
	}
	b := view{scratch, l.k, 1}
	for r := range l.r {
		for s := range l.s {
			for k := range l.deep {
				copy(b.data[((r*l.s+s)*l.deep+k)*l.k:][:l.k], w[l.weight(r, s, k):])
			}
		}
	}
	return b
}

// weight is where in W the weights of tap r,s and channel k of a turned filter are.
func (f *filter) weight(r, s, k int) int {
	return ((k*f.wr+f.rowTap-r*f.t)*f.ws + f.colTap - s*f.t) * f.wc
}

// sumPlain is a part of the weight gradient in Go, that of some outputs, for one tap after the
// other.
func sumPlain(v *convolution, x, dy, dw, scratch []float32, part, of int) {
	first, end := portion(part, of, v.k, 1)
	l := v.forward()
	images, rows, cols := v.parts()
	for m := range images * rows * cols {
		now := v.part(m)
		a := view{dy[((now.n*v.p+now.i)*v.q+now.j)*v.k:], 1, v.k}
		for r := range v.r {
			for s := range v.s {
				b := view{scratch, v.c, 1}
				to := scratch
				for n := range now.images {
					for i := range now.rows {
						l.copyLine(to, x, now.n+n, l.top+(now.i+i)*l.step+r, l.left+now.j*l.step+s, now.cols, l.step,
							v.c)
						to = to[now.cols*v.c:]
					}
				}
				c := view{dw[(r*v.s+s)*v.c:], v.r * v.s * v.c, 1}
				for i := first; i < end; i += plainRows {
					for j := 0; j < v.c; j += plainCols {
						plainTile(min(plainRows, end-i), min(plainCols, v.c-j), now.count(), 1, a.from(i, 0),
							b.from(0, j), betaOf(m), c.from(i, j))
					}
				}
			}
		}
	}
}

func sumPlainScratch(v *convolution) int { return min(convPixels, v.n*v.p*v.q) * v.c }
