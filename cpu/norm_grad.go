package cpu

import "math"

// batchNormGrad is the gradient of BatchNorm with what follows.
func batchNormGrad(follows int) func(*operands) error {
	return inColumns(func(o *operands, part, of int) {
		in := o.in
		n := normGradient{m: o.dims[0], c: o.dims[1], eps: o.attr, follows: follows, x: in[0]}
		if follows != normPlain {
			n.y = in[1]
			in = in[1:]
		}
		n.dy, n.gamma, n.mean, n.variance = in[1], in[2], in[3], in[4]
		out := o.out
		n.dx = out[0]
		if follows == normAddReLU {
			n.dz = out[1]
			out = out[1:]
		}
		n.dgamma, n.dbeta = out[1], out[2]
		n.run(portion(part, of, n.c, perLine))
	})
}

// normGradient is one call of a gradient.
type normGradient struct {
	m, c, follows int
	eps           float64

	x, y, dy, dx, dz      []float32
	gamma, mean, variance []float32
	dgamma, dbeta         []float32
}

func (n *normGradient) run(from, to int) {
	w := channelPool.Get().(*channels)
	for col := from; col < to; col += normCols {
		cols := min(normCols, to-col)
		n.sums(w, col, cols)
		n.factors(w, col, cols)
		n.apply(w, col, cols)
	}
	activeLoops().fence()
	channelPool.Put(w)
}

// streamsPast says whether an output goes past the cache. A gradient has up to five matrices at
// work, and fewer of their rows stay in the third cache than in a forward pass.
func (n *normGradient) streamsPast(y []float32) int { return streamsPast(y, n.c, streamBytes/2) }

// rowsFrom returns what there is of a matrix from a place on.
func rowsFrom(matrix []float32, at int) []float32 {
	if matrix == nil {
		return nil
	}
	return matrix[at:]
}

// sums computes A and B of columns.
func (n *normGradient) sums(w *channels, col, cols int) {
	copy(w.mean, n.mean[col:][:cols])
	gradSums := activeLoops().gradSums[n.streamsPast(n.dz)][n.follows]
	step := normRows(cols)
	ahead := rowsAhead(n.m, n.c, step)
	if n.follows != normPlain {
		ahead = sweepAhead(3)
	}
	for first := 0; first < n.m; first += normBlock {
		end := min(first+normBlock, n.m)
		for i := first; i < end; i += step {
			s, at := normSpan{n.c, min(step, end-i), cols, ahead}, i*n.c+col
			gradSums(s, n.x[at:], n.dy[at:], rowsFrom(n.y, at), rowsFrom(n.dz, at), w.mean, w.part[0], w.part[1])
		}
		w.fold(activeLoops(), cols)
	}
}

// factors turns the sums of columns into their gradients and into the factors of dx.
func (n *normGradient) factors(w *channels, col, cols int) {
	m := float64(n.m)
	for j := range cols {
		sum, product := w.sum[0][j], w.sum[1][j]
		inv := 1 / math.Sqrt(float64(n.variance[col+j])+n.eps)
		k := float64(n.gamma[col+j]) * inv
		along := product * inv
		n.dbeta[col+j], n.dgamma[col+j] = float32(sum), float32(along)
		w.a[j] = float32(k)
		w.b[j] = float32(-(k * inv * along) / m)
		w.e[j] = float32(-(k * sum) / m)
	}
	w.done(cols)
}

// apply computes dx, from the last rows to the first.
func (n *normGradient) apply(w *channels, col, cols int) {
	g, follows := n.dy, n.follows
	if follows == normAddReLU { // the first pass has left g in dz
		g, follows = n.dz, normPlain
	}
	gradient := activeLoops().gradient[n.streamsPast(n.dx)][follows]
	step, ahead := normRows(cols), sweepAhead(2)
	if follows == normReLU {
		ahead = sweepAhead(3)
	}
	for i := (n.m - 1) / step * step; i >= 0; i -= step {
		s, at := normSpan{n.c, min(step, n.m-i), cols, ahead}, i*n.c+col
		gradient(s, n.x[at:], g[at:], rowsFrom(n.y, at), n.dx[at:], w.mean, w.a, w.b, w.e)
	}
}
