package cli

import (
	"fmt"
	"math"
)

// The recursion of DeMo, whose agents send the largest cosine coefficients of their momenta.

// demo takes steps of the signs of what agents sent. Ties are those of the size of coefficients, of
// which those that were sent are missing from the program's momentum, and those of signs.
func (r *recursion) demo() {
	spec, keep := one(r, "compress", "dct(64,32)", "dct(8,5)"), param(r, "keep", 0.999, 0.9)
	var side, most int
	fmt.Sscanf(spec, "dct(%d,%d)", &side, &most)
	inputs := (r.d - r.classes) / r.classes
	chunks := append(cut(0, r.classes, inputs, side), cut(r.classes*inputs, 1, r.classes, side)...)
	x, e := r.x[0], zeroes(r.n, r.d)
	for t := range r.iterations {
		sums, senders := make([]float64, r.d), make([]float64, r.d)
		for i := range e {
			e[i] = plus(scaled(keep, e[i]), r.alpha, r.grad(i, x))
			sent := r.coefficients(chunks, most, e[i], func() []float64 { return r.after(t+1, i, "momentum") })
			for k, v := range sent {
				if v != 0 {
					sums[k], senders[k] = sums[k]+v, senders[k]+1
				}
			}
			e[i] = plus(e[i], -1, transform(chunks, sent, true))
		}
		for k := range sums {
			sums[k] /= max(1, senders[k])
		}
		x = scaled(1-r.alpha*r.decay, x)
		var program []float64
		x = plus(x, -r.alpha, r.steps(chunks, transform(chunks, sums, true), func(k int) float64 {
			if program == nil {
				program = r.after(t+1, 0, "x")
			}
			return (x[k] - program[k]) / r.alpha
		}))
	}
	for i := range r.x {
		r.x[i] = x
	}
}

// coefficients returns the largest of each chunk of e, 0 for the others. left is the program's e
// without them.
func (r *recursion) coefficients(chunks []chunk, most int, e []float64, left func() []float64) []float64 {
	c, sent := transform(chunks, e, false), make([]float64, r.d)
	var rest []float64
	tie := r.deciding(func(k int) float64 {
		if rest == nil {
			rest = transform(chunks, left(), false)
		}
		return c[k] - rest[k]
	})
	for _, one := range chunks {
		r.largest(sent, c, one.at, most, one.near(c), tie)
	}
	return sent
}

// steps returns the signs of v.
func (r *recursion) steps(chunks []chunk, v []float64, program func(k int) float64) []float64 {
	out, tie := make([]float64, r.d), r.deciding(program)
	for _, one := range chunks {
		near := one.near(v)
		r.decisions += len(one.at)
		for _, k := range one.at {
			if out[k] = math.Copysign(1, v[k]); math.Abs(v[k]) < near {
				out[k] = tie(k, -1, 0, 1)
			}
		}
	}
	return out
}

// chunk is a rectangle of a matrix with its coordinates in the vector, by rows.
type chunk struct {
	rows, cols int
	at         []int
}

// near is more than the rounding errors of v in a chunk.
func (c chunk) near(v []float64) (near float64) {
	for _, k := range c.at {
		near = max(near, 1e-5*math.Abs(v[k]))
	}
	return near
}

// cut divides a matrix into chunks, whose sides are the largest divisors up to side.
func cut(first, rows, cols, side int) (chunks []chunk) {
	divisor := func(n int) int {
		d := min(n, side)
		for n%d > 0 {
			d--
		}
		return d
	}
	high, wide := divisor(rows), divisor(cols)
	for top := 0; top < rows; top += high {
		for left := 0; left < cols; left += wide {
			c := chunk{rows: high, cols: wide}
			for k := range high * wide {
				c.at = append(c.at, first+(top+k/wide)*cols+left+k%wide)
			}
			chunks = append(chunks, c)
		}
	}
	return chunks
}

// transform is the orthonormal cosine transform of each chunk, or its inverse. Coefficients take the
// places of the numbers.
func transform(chunks []chunk, v []float64, inverse bool) []float64 {
	out := make([]float64, len(v))
	for _, c := range chunks {
		down, across := cosines(c.rows, inverse), cosines(c.cols, inverse)
		half := make([]float64, len(c.at))
		for k := range half {
			for j := range c.cols {
				half[k] += across[k%c.cols][j] * v[c.at[k/c.cols*c.cols+j]]
			}
		}
		for k, at := range c.at {
			for i := range c.rows {
				out[at] += down[k/c.cols][i] * half[i*c.cols+k%c.cols]
			}
		}
	}
	return out
}

// cosines returns the matrix of the transform of n numbers, or its transpose.
func cosines(n int, transposed bool) [][]float64 {
	m := zeroes(n, n)
	for u := range n {
		for i := range n {
			f := math.Sqrt(2/float64(n)) * math.Cos(math.Pi*(float64(i)+0.5)*float64(u)/float64(n))
			if u == 0 {
				f = math.Sqrt(1 / float64(n))
			}
			if transposed {
				m[i][u] = f
			} else {
				m[u][i] = f
			}
		}
	}
	return m
}
