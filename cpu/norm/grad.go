package norm

import (
	"math"

	"fspda/cpu/kernel"
)

// batchNormGrad returns the gradient of BatchNorm with an activation.
func batchNormGrad(activation int) kernel.Kernel {
	return columnKernel(false, func(o *kernel.Args) normGradient {
		in := o.In
		n := normGradient{m: o.Dims[0], c: o.Dims[1], eps: o.Attr, activation: activation, x: in[0]}
		if activation != plain {
			n.y = in[1]
			in = in[1:]
		}
		n.dy, n.gamma, n.mean, n.variance = in[1], in[2], in[3], in[4]
		out := o.Out
		n.dx = out[0]
		if activation == withAddReLU {
			n.dz = out[1]
			out = out[1:]
		}
		n.dgamma, n.dbeta = out[1], out[2]
		return n
	})
}

type normGradient struct {
	m, c, activation int
	eps              float64

	x, y, dy, dx, dz      []float32
	gamma, mean, variance []float32
	dgamma, dbeta         []float32
}

// nonTemporal reports whether to write an output by non-temporal stores. A gradient uses up to five
// matrices, and fewer of their rows stay in the third-level cache than in a forward pass.
func (n *normGradient) nonTemporal(y []float32) int { return nonTemporal(y, n.c, nonTemporalBytes/2) }

// fromOffset returns a matrix from an offset on; nil stays nil.
func fromOffset(matrix []float32, at int) []float32 {
	if matrix == nil {
		return nil
	}
	return matrix[at:]
}

func (n *normGradient) load(w *columnBuffers, col, cols int) { copy(w.mean, n.mean[col:][:cols]) }

// addBlock adds the rows of a block to A and B of the block.
func (n *normGradient) addBlock(w *columnBuffers, block, col, cols int) {
	gradSums := active().gradSums[n.nonTemporal(n.dz)][n.activation]
	step := rowsPerCall(cols)
	ahead := columnPrefetch(n.m, n.c, step)
	if n.activation != plain {
		ahead = rowPrefetch(3)
	}
	end := min((block+1)*blockRows, n.m)
	for i := block * blockRows; i < end; i += step {
		s, at := span{n.c, min(step, end-i), cols, ahead}, i*n.c+col
		gradSums(s, n.x[at:], n.dy[at:], fromOffset(n.y, at), fromOffset(n.dz, at), w.mean, w.part[0], w.part[1])
	}
}

// factors turns the sums of columns into their gradients and into the factors of dx.
func (n *normGradient) factors(w *columnBuffers, col, cols int) {
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
	w.clearSums(cols)
}

// apply computes some rows of dx, from the last to the first.
func (n *normGradient) apply(w *columnBuffers, from, to, col, cols int) {
	g, activation := n.dy, n.activation
	if activation == withAddReLU { // the first pass has left g in dz
		g, activation = n.dz, plain
	}
	gradient := active().gradient[n.nonTemporal(n.dx)][activation]
	step, ahead := rowsPerCall(cols), rowPrefetch(2)
	if activation == withReLU {
		ahead = rowPrefetch(3)
	}
	for i := from + (to-from-1)/step*step; i >= from; i -= step {
		s, at := span{n.c, min(step, to-i), cols, ahead}, i*n.c+col
		gradient(s, n.x[at:], g[at:], fromOffset(n.y, at), n.dx[at:], w.mean, w.a, w.b, w.e)
	}
}
