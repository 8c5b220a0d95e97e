package vec

import "fspda/device"

// DotBlock is the length of the blocks whose scalar products are added from left to right.
const DotBlock = vecBlock

// DotBlocks writes the scalar products of blocks from, from+1, ... of the vectors of a Dot to sums.
func DotBlocks(sums []float64, op *device.Op, from int) {
	x, y := numbers(op.In[0]), numbers(op.In[1])
	for i := range sums {
		at := (from + i) * DotBlock
		to := min(at+DotBlock, len(x))
		sums[i] = dotBlock(x[at:to], y[at:to])
	}
}

// dot adds the blocks of the vectors from left to right. The order of additions is fixed, and a
// product of two float32 is exact in float64, so the result has the same bits on every machine.
func dot(x, y []float32) float64 {
	y = y[:len(x)]
	s := 0.0
	for len(x) > 0 {
		n := min(DotBlock, len(x))
		s += dotBlock(x[:n], y[:n])
		x, y = x[n:], y[n:]
	}
	return s
}

// SumOfSquares returns the sum of the squares of x, with the bits of [device.Dot].
func SumOfSquares(x []float32) float64 { return dot(x, x) }

// dotGo adds in 32 partial sums, product k to sum k mod 32, so that the additions do not depend on
// each other and fill vectors. The sums are then added as a tree: sum l takes sum l+16, then l+8,
// l+4, l+2 and l+1.
func dotGo(x, y []float32) float64 {
	var s [dotSums]float64
	y = y[:len(x)]
	for len(x) > 0 {
		n := min(dotSums, len(x))
		for l, v := range x[:n] {
			s[l] += float64(float64(v) * float64(y[l]))
		}
		x, y = x[n:], y[n:]
	}
	return tree(s[:])
}

// tree adds the upper half of s to its lower half until one number is left. The length is a power
// of two.
func tree(s []float64) float64 {
	for half := len(s) / 2; half > 0; half /= 2 {
		for l := range half {
			s[l] += s[l+half]
		}
	}
	return s[0]
}
