package norm

import (
	"math"

	"fspda/cpu/kernel"
)

// batchNormGrad returns the gradient of BatchNorm with an activation.
func batchNormGrad(activation int) kernel.Kernel {
	inputs, outputs := uint8(1|2), uint8(1)
	switch activation {
	case withAddReLU:
		inputs, outputs = 1|2|4, 1|2
	case withReLU:
		inputs = 1 | 2 | 4
	}
	k := columnKernel(false, func(o *kernel.Args) normGradient {
		in, dy := o.In, 1
		n := normGradient{m: o.Dims[0], c: o.Dims[1], eps: o.Attr, activation: activation,
			x: matrix{in[0], o.Half.Input(0)}}
		if activation != plain {
			n.y, dy = matrix{in[1], o.Half.Input(1)}, 2
		}
		n.dy, in = matrix{in[dy], o.Half.Input(dy)}, in[dy+1:]
		n.gamma, n.mean, n.variance = in[0], in[1], in[2]
		out := o.Out
		n.dx = matrix{out[0], o.Half.Output(0)}
		if activation == withAddReLU {
			n.dz = matrix{out[1], o.Half.Output(1)}
			out = out[1:]
		}
		n.dgamma, n.dbeta = out[1], out[2]
		return n
	})
	k.Half = evenColumns(kernel.Halves{In: inputs, Out: outputs})
	return k
}

type normGradient struct {
	m, c, activation int
	eps              float64

	x, y, dy, dx, dz      matrix
	gamma, mean, variance []float32
	dgamma, dbeta         []float32
}

// gradientBytes is the size from which an output of a gradient is written by non-temporal stores. A
// gradient uses up to five matrices, and fewer of their rows stay in the third-level cache than in a
// forward pass.
const gradientBytes = nonTemporalBytes / 2

func (n *normGradient) load(w *columnBuffers, col, cols int) { copy(w.mean, n.mean[col:][:cols]) }

// addBlock adds the rows of a block to A and B of the block.
func (n *normGradient) addBlock(w *columnBuffers, block, col, cols int) {
	v := newWindow(n.c, col, cols, gradientBytes, n.x, n.dy, n.y, n.dz)
	defer v.release()
	gradSums := v.gradSums[v.stores(n.dz)][n.activation]
	step := v.step()
	ahead := columnPrefetch(n.m, n.c, step)
	if n.activation != plain {
		ahead = rowPrefetch(3)
	}
	end := min((block+1)*blockRows, n.m)
	for i := block * blockRows; i < end; i += step {
		v.move(i, min(step, end-i), ahead)
		dz := v.output(3, n.dz)
		gradSums(v.span, v.read(0, n.x), v.read(1, n.dy), v.read(2, n.y), dz, w.mean, w.part[0], w.part[1])
		v.write(n.dz, dz)
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
	g, y, activation := n.dy, n.y, n.activation
	switch {
	case activation != withAddReLU:
	case n.dz.half && !n.dy.half: // dz is rounded
		activation = withReLU
	default: // the first pass has left g in dz
		g, y, activation = n.dz, matrix{}, plain
	}
	v := newWindow(n.c, col, cols, gradientBytes, n.x, g, y, n.dx)
	defer v.release()
	gradient := v.gradient[v.stores(n.dx)][activation]
	step, ahead := v.step(), rowPrefetch(2)
	if activation == withReLU {
		ahead = rowPrefetch(3)
	}
	for i := from + (to-from-1)/step*step; i >= from; i -= step {
		v.move(i, min(step, to-i), ahead)
		dx := v.output(3, n.dx)
		gradient(v.span, v.read(0, n.x), v.read(1, g), v.read(2, y), dx, w.mean, w.a, w.b, w.e)
		v.write(n.dx, dx)
	}
}
