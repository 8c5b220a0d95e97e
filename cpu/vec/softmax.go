package vec

import "math"

var negativeInf = float32(math.Inf(-1))

// rowMaximaGo writes the largest number of each row of n numbers to tops. NaN are ignored: the
// exponentials of their row become NaN anyway. Without another number the maximum is -Inf. A zero
// is positive.
func rowMaximaGo(tops, x []float32, n int) {
	for r := range tops {
		top := negativeInf
		for _, v := range x[r*n : (r+1)*n] {
			if v > top {
				top = v
			}
		}
		if top == 0 {
			top = 0 // a zero has either sign: the result must not depend on the order of comparisons
		}
		tops[r] = top
	}
}

// expRowsGo writes exp(x - top), computed in float64 and rounded, to dst for rows of n numbers, and
// the sum of each row before rounding to sums: number j of a row is added to partial sum j mod 16,
// and the partial sums are added as a tree.
func expRowsGo(dst []float32, sums []float64, x, tops []float32, n int) {
	for r := range sums {
		sums[r] = expRowGo(dst[r*n:(r+1)*n], x[r*n:(r+1)*n], float64(tops[r]))
	}
}

func expRowGo(dst, x []float32, top float64) float64 {
	var buffer [expBlock]float64
	var s [rowSums]float64
	for len(x) > 0 {
		e := buffer[:min(expBlock, len(x))]
		for j, v := range x[:len(e)] {
			e[j] = float64(v) - top
		}
		exps(e)
		for j, v := range e {
			s[j%rowSums] += v
			dst[j] = float32(v)
		}
		x, dst = x[len(e):], dst[len(e):]
	}
	return tree(s[:])
}

// slopeRowsGo writes p·(d - mean) to dst for rows of n numbers, computed in float64. Rows of dst
// and p lie stride numbers apart.
func slopeRowsGo(dst, p, d []float32, means []float64, n, stride int) {
	for r, mean := range means {
		row, slopes := dst[r*stride:][:n], d[r*n:][:n]
		for j, v := range p[r*stride:][:n] {
			row[j] = float32(float64(v) * (float64(slopes[j]) - mean))
		}
	}
}

// timesRowsGo writes the rows of n numbers of src times scales, multiplied in float64, to dst.
func timesRowsGo(dst, src []float32, scales []float64, n int) {
	for r, s := range scales {
		row := dst[r*n : (r+1)*n]
		for j, v := range src[r*n : (r+1)*n] {
			row[j] = float32(float64(v) * s)
		}
	}
}
