//go:build !windows

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
	for t := range r.times(1) {
		all := collected{make([]float64, r.d), make([]float64, r.d), make([]float64, r.d)}
		for i := range e {
			e[i] = plus(scaled(keep, e[i]), r.alpha, r.grad(i, x))
			sent := r.coefficients(chunks, most, e[i], &all, func() []float64 { return r.after(t+1, i, "momentum") })
			e[i] = plus(e[i], -1, transform(chunks, sent, inverse))
		}
		x = scaled(1-r.alpha*r.decay, x)
		var program []float64
		x = plus(x, -r.alpha, r.steps(chunks, all, func(k int) float64 {
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

// collected is what agents sent in an iteration, by coefficient: the sum, the number of senders,
// and the number of agents that may have sent a zero.
type collected struct{ sums, senders, zeros []float64 }

// coefficients returns the largest of each chunk of e, 0 for the others, and adds them to what
// other agents sent. left is the program's e without them. Where a chunk sends more coefficients
// than are not zero, rounding errors decide which zeros are sent.
func (r *recursion) coefficients(chunks []chunk, most int, e []float64, to *collected,
	left func() []float64) []float64 {
	c, sent := transform(chunks, e, forward), make([]float64, r.d)
	var rest []float64
	tie := r.deciding(func(k int) float64 {
		if rest == nil {
			rest = transform(chunks, left(), forward)
		}
		return c[k] - rest[k]
	})
	for _, part := range chunks {
		var some []int
		near := part.near(c)
		for _, k := range part.at {
			if math.Abs(c[k]) > near {
				some = append(some, k)
			}
		}
		if r.largest(sent, c, some, most, near, tie); len(some) >= most {
			continue
		}
		for _, k := range part.at {
			if math.Abs(c[k]) <= near {
				to.zeros[k]++
			}
		}
	}
	for k, v := range sent {
		if v != 0 {
			to.sums[k], to.senders[k] = to.sums[k]+v, to.senders[k]+1
		}
	}
	return sent
}

// steps returns the signs of the means of what agents sent.
func (r *recursion) steps(chunks []chunk, all collected, program func(k int) float64) []float64 {
	means, unknown := make([]float64, r.d), make([]float64, r.d)
	for k, sum := range all.sums {
		means[k] = sum / max(1, all.senders[k])
		unknown[k] = math.Abs(means[k] - sum/max(1, all.senders[k]+all.zeros[k]))
	}
	v, limit := transform(chunks, means, inverse), transform(chunks, unknown, magnitudes)
	out, tie := make([]float64, r.d), r.deciding(program)
	for _, part := range chunks {
		near := part.near(v)
		r.decisions += len(part.at)
		for _, k := range part.at {
			if out[k] = math.Copysign(1, v[k]); math.Abs(v[k]) < near+limit[k] {
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

// transform multiplies the numbers of each chunk by the matrices that basis has for its sides.
// Coefficients take the places of numbers.
func transform(chunks []chunk, v []float64, basis func(n int) [][]float64) []float64 {
	out := make([]float64, len(v))
	down, across := basis(chunks[0].rows), basis(chunks[0].cols)
	for _, c := range chunks {
		if c.rows != len(down) || c.cols != len(across) {
			down, across = basis(c.rows), basis(c.cols)
		}
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

// forward is the orthonormal cosine transform of n numbers.
func forward(n int) [][]float64 {
	m := zeroes(n, n)
	for u := range n {
		for i := range n {
			m[u][i] = math.Sqrt(2/float64(n)) * math.Cos(math.Pi*(float64(i)+0.5)*float64(u)/float64(n))
			if u == 0 {
				m[u][i] = math.Sqrt(1 / float64(n))
			}
		}
	}
	return m
}

// inverse is the transpose of forward.
func inverse(n int) [][]float64 {
	m, f := zeroes(n, n), forward(n)
	for u := range n {
		for i := range n {
			m[i][u] = f[u][i]
		}
	}
	return m
}

// magnitudes is that of inverse, for a bound of its sums.
func magnitudes(n int) [][]float64 {
	m := inverse(n)
	for _, row := range m {
		for k, x := range row {
			row[k] = math.Abs(x)
		}
	}
	return m
}
