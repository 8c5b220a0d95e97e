package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// plainCorrelation is the definition of a correlation in Go, and runs where there is no assembly.
// The assembly is bit-identical.
func plainCorrelation(l *correlation, src, w, out, scratch []float32) {
	all := l.products()
	patches, scratch := scratch[:tile.PlainRows*all], scratch[tile.PlainRows*all:]
	numbers := scratch
	if l.half {
		scratch = scratch[tile.PlainRows*l.k:]
	}
	b := l.plainWeights(w, scratch)
	for n := range l.images {
		for i := range l.p {
			for j := 0; j < l.q; j += tile.PlainRows {
				rows := min(tile.PlainRows, l.q-j)
				for m := range rows {
					l.copyPatch(patches[m*all:], src, n, i, j+m)
				}
				a, c := tile.RowMajor(patches, all), tile.RowMajor(numbers, l.k)
				if !l.half {
					c = tile.RowMajor(out[l.outputAt(n, i, j):], l.pixelStride)
				}
				for m := range l.chunks() {
					part, before := l.chunk(m)
					for k := 0; k < l.k; k += tile.PlainCols {
						l.kind.Plain(rows, min(tile.PlainCols, l.k-k),
							part.depth(), 1, a.From(0, before), b.From(before, k), betaOf(m), c.From(0, k))
					}
				}
				for m := 0; l.half && m < rows; m++ {
					tile.Narrow(out[l.outputAt(n, i, j+m)/2:], numbers[m*l.k:][:l.k])
				}
			}
		}
	}
}

// betaOf returns the beta of chunk m: the first one overwrites.
func betaOf(m int) float32 {
	if m == 0 {
		return 0
	}
	return 1
}

func plainScratch(l *correlation) int {
	n := tile.PlainRows * l.products()
	if l.half {
		n += tile.PlainRows * l.k
	}
	if l.flipped {
		n += l.products() * l.k
	}
	return n
}

func (l *correlation) copyPatch(dst, src []float32, n, i, j int) {
	run := l.s * l.channels
	for r := range l.r {
		l.copyRow(dst[r*run:], src, n, l.firstRow+i*l.stride+r, l.firstCol+j*l.stride, l.s, 1, l.channels)
	}
}

// plainWeights returns the weights by product and output, copied to scratch if necessary.
func (l *correlation) plainWeights(w, scratch []float32) tile.View {
	if !l.flipped {
		return tile.ColMajor(w, l.products())
	}
	b := tile.RowMajor(scratch, l.k)
	for r := range l.r {
		for s := range l.s {
			for k := range l.channels {
				copy(b.Data[((r*l.s+s)*l.channels+k)*l.k:][:l.k], w[l.weight(r, s, k):])
			}
		}
	}
	return b
}

// weight returns where in W the weights of tap r,s and channel k of a flipped filter are.
func (f *filter) weight(r, s, k int) int {
	return ((k*f.wRows+f.tapRow-r*f.tapStride)*f.wCols + f.tapCol - s*f.tapStride) * f.wChannels
}

// plainWeightGradient computes the weight gradient of some outputs in Go, tap by tap.
func plainWeightGradient(v *convolution, x, dy, dw, scratch []float32, part, of int) {
	first, end := kernel.SplitUnits(part, of, v.k, 1)
	l, size := v.forward(), v.c
	if v.half.Input(0) {
		size = v.c / 2
		l.channels = size
	}
	images, rows, cols := v.pixelParts()
	for m := range images * rows * cols {
		now := v.pixelPart(m)
		a, count := tile.ColMajor(dy[v.gradWords(((now.n*v.p+now.i)*v.q+now.j)*v.k):], v.k), now.count()
		numbers, pairs := scratch, scratch[v.largestRows()*v.c:]
		if v.kind != tile.Numbers {
			all := now.pairs()
			a, count, pairs = tile.ColMajor(pairs, v.k), all, pairs[all*v.k:]
			v.pairsOfGradient(a.Data, dy, now)
		}
		for r := range v.r {
			for s := range v.s {
				b := tile.RowMajor(numbers, v.c)
				to := numbers
				for n := range now.images {
					for i := range now.rows {
						l.copyRow(to, x, now.n+n,
							l.firstRow+(now.i+i)*l.stride+r, l.firstCol+now.j*l.stride+s, now.cols, l.stride, size)
						to = to[now.cols*size:]
					}
				}
				if v.kind != tile.Numbers {
					pairRows(pairs, numbers, now.images*now.rows, now.cols, v.c, v.half.Input(0))
					b.Data = pairs
				}
				c := tile.RowMajor(dw[(r*v.s+s)*v.c:], v.r*v.s*v.c)
				for i := first; i < end; i += tile.PlainRows {
					for j := 0; j < v.c; j += tile.PlainCols {
						v.kind.Plain(min(tile.PlainRows, end-i), min(tile.PlainCols, v.c-j), count, 1, a.From(i, 0),
							b.From(0, j), betaOf(m), c.From(i, j))
					}
				}
			}
		}
	}
}

// largestRows returns the most pixels of a part.
func (v *convolution) largestRows() int { return min(maxPixels, v.n*v.p*v.q) }

func plainWeightGradScratch(v *convolution) int {
	n := v.largestRows() * v.c
	if v.kind != tile.Numbers {
		largest := v.pixelPart(0)
		n += largest.pairs() * (v.k + v.c)
	}
	return n
}

// pairsOfGradient writes the pairs of a part of dy.
func (v *convolution) pairsOfGradient(to, dy []float32, part pixels) {
	for n := range part.images {
		for i := range part.rows {
			from := dy[v.gradWords((((part.n+n)*v.p+part.i+i)*v.q+part.j)*v.k):]
			pairRows(to, from, 1, part.cols, v.k, v.half.Input(1))
			to = to[(part.cols+1)/2*v.k:]
		}
	}
}

// gradWords returns how many words numbers of dy take.
func (v *convolution) gradWords(n int) int {
	if v.half.Input(1) {
		return n / 2
	}
	return n
}

// pairRows writes the pairs of neighbours in rows of some pixels of size numbers, with zeros behind
// an odd number of pixels.
func pairRows(to, from []float32, rows, pixels, size int, half bool) {
	words := size
	if half {
		words = size / 2
	}
	for range rows {
		for j := 0; j < pixels; j += 2 {
			next := []float32(nil)
			if j+1 < pixels {
				next = from[(j+1)*words:][:words]
			}
			between(to, from[j*words:][:words], next, half)
			to = to[size:]
		}
		from = from[pixels*words:]
	}
}

// between writes pairs of numbers of a and b, which have 16 bits or 32.
func between(to, a, b []float32, half bool) {
	if half {
		tile.Interleave(to, a, b)
	} else {
		tile.Between(to, a, b)
	}
}
