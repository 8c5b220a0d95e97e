package devicetest

import (
	"math"
	"strings"

	"fspda/device"
	"fspda/internal/rng"
)

// isNorm reports whether a kernel normalizes columns, or is the gradient of one that does.
func isNorm(k device.Kernel) bool {
	return strings.HasPrefix(string(k), "batch-norm") || strings.HasPrefix(string(k), "normalize")
}

// interpretNorm evaluates the kernels of batch normalization.
func interpretNorm(c *device.Call, in, out [][]float64) {
	switch c.Kernel {
	case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU:
		statistics(c, in[0], out[1], out[2])
		normalize(c, in[0], in[1], in[2], out[1], out[2], out[0])
	case device.Normalize, device.NormalizeReLU, device.NormalizeAddReLU:
		normalize(c, in[0], in[1], in[2], in[3], in[4], out[0])
	default:
		normGradient(c, in, out)
		return
	}
	for i := range out[0] {
		switch c.Kernel {
		case device.BatchNormAddReLU:
			out[0][i] = math.Max(out[0][i]+in[3][i], 0)
		case device.NormalizeAddReLU:
			out[0][i] = math.Max(out[0][i]+in[5][i], 0)
		case device.BatchNormReLU, device.NormalizeReLU:
			out[0][i] = math.Max(out[0][i], 0)
		}
	}
}

// statistics computes mean and variance of every column in two passes.
func statistics(c *device.Call, x, mean, variance []float64) {
	m, cols := c.Dims[0], c.Dims[1]
	clear(mean)
	clear(variance)
	for i, v := range x {
		mean[i%cols] += v / float64(m)
	}
	for i, v := range x {
		d := v - mean[i%cols]
		variance[i%cols] += d * d / float64(m)
	}
}

func normalize(c *device.Call, x, gamma, beta, mean, variance, y []float64) {
	for i, v := range x {
		j := i % c.Dims[1]
		y[i] = gamma[j]*(v-mean[j])/math.Sqrt(variance[j]+c.Attr) + beta[j]
	}
}

// normGradient evaluates the gradient kernels of batch normalization.
func normGradient(c *device.Call, in, out [][]float64) {
	n := gradientOperands(c, in)
	m, cols := c.Dims[0], c.Dims[1]
	dx, dgamma, dbeta := out[0], out[len(out)-2], out[len(out)-1]
	clear(dgamma)
	clear(dbeta)
	for i, g := range n.g {
		dbeta[i%cols] += g
		dgamma[i%cols] += g * n.normalized(i)
	}
	for i, g := range n.g {
		j := i % cols
		dx[i] = n.gamma[j] * n.inverse(j) * (g - dbeta[j]/float64(m) - n.normalized(i)*dgamma[j]/float64(m))
	}
	if c.Kernel == device.BatchNormAddReLUGrad {
		copy(out[1], n.g)
	}
}

// normOperands are the inputs of a gradient kernel; g is the gradient after its ReLU mask.
type normOperands struct {
	cols                  int
	eps                   float64
	x, g                  []float64
	gamma, mean, variance []float64
}

func gradientOperands(c *device.Call, in [][]float64) *normOperands {
	n := &normOperands{cols: c.Dims[1], eps: c.Attr, x: in[0]}
	dy, rest := in[1], in[2:]
	if c.Kernel != device.BatchNormGrad {
		dy, rest = in[2], in[3:]
	}
	n.g = append(n.g, dy...)
	if c.Kernel != device.BatchNormGrad {
		for i, y := range in[1] {
			if !(y > 0) {
				n.g[i] = 0
			}
		}
	}
	n.gamma, n.mean, n.variance = rest[0], rest[1], rest[2]
	return n
}

func (n *normOperands) inverse(j int) float64 { return 1 / math.Sqrt(n.variance[j]+n.eps) }

// normalized returns element i of (x - mean)/sqrt(var + eps).
func (n *normOperands) normalized(i int) float64 {
	j := i % n.cols
	return (n.x[i] - n.mean[j]) * n.inverse(j)
}

// normCalls lists the calls of batch normalization: vector widths on both axes, many rows, and
// channel counts between vector widths.
func normCalls(add func(attr float64, dims ...int)) {
	for i, m := range widths {
		for j, c := range widths {
			add([]float64{1e-5, 1e-3, 0.25}[(i+j)%3], m, c)
		}
	}
	add(1e-5, 1200, 5) // more than one block of any summation
	add(1e-5, 600, 64)
	add(1e-5, 40, 200)
	add(1e-5, 3, 2100)
}

// normInputs prepares inputs of a normalization: some columns with a large mean, positive
// variances, and ReLU outputs.
func normInputs(c *device.Call, in [][]float32) {
	s, cols := rng.New(5, string(c.Kernel)), c.Dims[1]
	for i := range in[0] {
		if j := i % cols; j%3 == 1 {
			in[0][i] += 1000
		}
	}
	at := 3
	switch c.Kernel {
	case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU:
		return
	case device.BatchNormReLUGrad, device.BatchNormAddReLUGrad:
		at = 4
		for i, y := range in[1] {
			in[1][i] = max(y, 0)
		}
	}
	mean, variance := in[at], in[at+1]
	for j := range mean {
		mean[j] = in[0][j] + s.Float32()
		variance[j] = 0.1 + 4*s.Float32()
	}
}

// normBounds fills b for batch normalization. Sums are in float64, and the only difference of large
// numbers is x − mean, which is exact where it matters.
func normBounds(c *device.Call, in, want, b [][]float64) {
	switch c.Kernel {
	case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU:
		statisticBounds(c, in, want, b)
		affineBounds(c, in, want[1], want[2], want[0], b[0])
	case device.Normalize, device.NormalizeReLU, device.NormalizeAddReLU:
		affineBounds(c, in, in[3], in[4], want[0], b[0])
	default:
		gradientBounds(c, in, want, b)
	}
}

// statisticBounds allows one rounding, and the float64 error of the largest summand.
func statisticBounds(c *device.Call, in, want, b [][]float64) {
	cols := c.Dims[1]
	for i, x := range in[0] {
		b[1][i%cols] = math.Max(b[1][i%cols], 0x1p-44*math.Abs(x))
	}
	for j := range cols {
		b[1][j] += unit * math.Abs(want[1][j])
		b[2][j] = (unit+0x1p-36)*want[2][j] + smallest
	}
}

// affineBounds allows five roundings of each part of y.
func affineBounds(c *device.Call, in [][]float64, mean, variance, want, b []float64) {
	for i, x := range in[0] {
		j := i % c.Dims[1]
		d := in[1][j] * (x - mean[j]) / math.Sqrt(variance[j]+c.Attr)
		b[i] = 5*unit*(math.Abs(d)+math.Abs(in[2][j])) + 2*unit*math.Abs(want[i]) + smallest
		if c.Kernel == device.BatchNormAddReLU {
			b[i] += unit * math.Abs(in[3][i])
		}
		if c.Kernel == device.NormalizeAddReLU {
			b[i] += unit * math.Abs(in[5][i])
		}
	}
}

func gradientBounds(c *device.Call, in, want, b [][]float64) {
	n := gradientOperands(c, in)
	m, cols := float64(c.Dims[0]), c.Dims[1]
	dgamma, dbeta := want[len(want)-2], want[len(want)-1]
	forGamma, forBeta := b[len(b)-2], b[len(b)-1]
	for i, g := range n.g {
		j, x := i%cols, math.Abs(n.normalized(i))
		forBeta[j] += 0x1p-44 * math.Abs(g)
		forGamma[j] += 0x1p-44 * math.Abs(g) * x
		parts := math.Abs(g) + math.Abs(dbeta[j])/m + x*math.Abs(dgamma[j])/m
		b[0][i] = 5*unit*math.Abs(n.gamma[j])*n.inverse(j)*parts + smallest
	}
	for j := range cols {
		forBeta[j] += unit*math.Abs(dbeta[j]) + smallest
		forGamma[j] += 2*unit*math.Abs(dgamma[j]) + smallest
	}
}
