package devicetest

import (
	"fmt"
	"math"

	"fspda/device"
)

// Interpret evaluates one kernel call in float64, as device.Kernel defines it. in and out replace
// c.In and c.Out, whose Refs are ignored. Labels are class indices as float64. It panics if
// operands do not match c.Dims.
func Interpret(c *device.Call, in, out [][]float64) {
	checkShapes(c, in, out)
	interpreters[c.Kernel](c, in, out)
}

type interpreter func(c *device.Call, in, out [][]float64)

var interpreters = map[device.Kernel]interpreter{
	device.Linear: func(c *device.Call, in, out [][]float64) {
		m, n, k := c.Dims[0], c.Dims[1], c.Dims[2]
		product(out[0], m, n, k, func(i, l int) float64 { return in[0][i*k+l] },
			func(l, j int) float64 { return in[1][j*k+l] })
		for i := range out[0] {
			out[0][i] += in[2][i%n]
		}
	},
	device.LinearGradX: func(c *device.Call, in, out [][]float64) {
		m, n, k := c.Dims[0], c.Dims[1], c.Dims[2]
		product(out[0], m, k, n, func(i, l int) float64 { return in[0][i*n+l] },
			func(l, j int) float64 { return in[1][l*k+j] })
	},
	device.LinearGradW: func(c *device.Call, in, out [][]float64) {
		m, n, k := c.Dims[0], c.Dims[1], c.Dims[2]
		product(out[0], n, k, m, func(i, l int) float64 { return in[1][l*n+i] },
			func(l, j int) float64 { return in[0][l*k+j] })
		product(out[1], 1, n, m, func(int, int) float64 { return 1 }, func(l, j int) float64 { return in[1][l*n+j] })
	},
	device.Sigmoid:     each1(func(_, x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	device.SigmoidGrad: each2(func(_, y, dy float64) float64 { return dy * y * (1 - y) }),
	device.ReLU:        each1(func(_, x float64) float64 { return math.Max(x, 0) }),
	device.ReLUGrad: each2(func(_, y, dy float64) float64 {
		if y > 0 {
			return dy
		}
		return 0
	}),
	device.SoftmaxCrossEntropy:      interpretLoss,
	device.SoftmaxCrossEntropyMixed: interpretLoss,
	device.Score:                    interpretScore,
	device.HalfSquare: func(c *device.Call, in, out [][]float64) {
		sum := 0.0
		for _, x := range in[0] {
			sum += x * x
		}
		out[0][0] = c.Attr / 2 * sum
	},
	device.Scale: each1(func(attr, x float64) float64 { return attr * x }),
	device.ScaleBy: func(c *device.Call, in, out [][]float64) {
		s := c.Attr * in[1][0]
		for i, x := range in[0] {
			out[0][i] = s * x
		}
	},
	device.Add:       each2(func(_, a, b float64) float64 { return a + b }),
	device.AddScaled: each2(func(attr, a, b float64) float64 { return a + attr*b }),
	device.MoveAverage: func(c *device.Call, in, out [][]float64) {
		momentum := in[2][0]
		for i, x := range in[0] {
			out[0][i] = (1-momentum)*in[1][i] + momentum*(c.Attr*x)
		}
	},
	device.Conv:      interpretConv,
	device.ConvGradX: interpretConv,
	device.ConvGradW: interpretConv,

	device.MaxPool:     interpretMaxPool,
	device.MaxPoolGrad: interpretMaxPoolGrad,
	device.AvgPool:     interpretAvgPool,
	device.AvgPoolGrad: interpretAvgPoolGrad,
}

// product computes the m×n matrix c = a·b over an inner dimension k.
func product(c []float64, m, n, k int, a, b func(i, j int) float64) {
	for i := range m {
		for j := range n {
			sum := 0.0
			for l := range k {
				sum += a(i, l) * b(l, j)
			}
			c[i*n+j] = sum
		}
	}
}

// each1 applies f to every element of the input.
func each1(f func(attr, x float64) float64) interpreter {
	return func(c *device.Call, in, out [][]float64) {
		for i, x := range in[0] {
			out[0][i] = f(c.Attr, x)
		}
	}
}

// each2 applies f to the call's Attr and every pair of elements of the inputs.
func each2(f func(attr, x, y float64) float64) interpreter {
	return func(c *device.Call, in, out [][]float64) {
		for i, x := range in[0] {
			out[0][i] = f(c.Attr, x, in[1][i])
		}
	}
}

func interpretLoss(c *device.Call, in, out [][]float64) {
	m, n := c.Dims[0], c.Dims[1]
	loss := 0.0
	for i := range m {
		row := in[0][i*n : (i+1)*n]
		norm := logSumExp(row)
		// the smoothed target of every class; the two labels have 1-Attr more together
		each := c.Attr / float64(n)
		weights := classWeights(c, in[1], i)
		for label, w := range weights {
			loss += w * (1 - c.Attr) * (norm - row[label])
		}
		for j, x := range row {
			p := math.Exp(x - norm)
			switch w := weights[j]; {
			case w == 1:
				p = math.Expm1(x-norm) + c.Attr
			case w > 0:
				p -= w * (1 - c.Attr)
			}
			if each != 0 { // 0 times an infinite logit would be NaN
				loss += each * (norm - x)
			}
			out[1][i*n+j] = (p - each) / float64(m)
		}
	}
	out[0][0] = loss / float64(m)
}

// classWeights returns the weights of the classes that the labels give to row i of a loss.
func classWeights(c *device.Call, labels []float64, i int) map[int]float64 {
	n := c.Dims[1]
	if c.Kernel == device.SoftmaxCrossEntropy {
		return map[int]float64{class(labels[i], n): 1}
	}
	first, second, w := class(labels[3*i], n), class(labels[3*i+1], n), labels[3*i+2]
	if first == second {
		return map[int]float64{first: 1}
	}
	return map[int]float64{first: w, second: 1 - w}
}

func interpretScore(c *device.Call, in, out [][]float64) {
	m, n := c.Dims[0], c.Dims[1]
	sums := out[0]
	clear(sums)
	for i := range m {
		row, label := in[0][i*n:(i+1)*n], class(in[1][i], n)
		sums[0] += logSumExp(row) - row[label]
		before, nan := 0, false
		for j, x := range row {
			nan = nan || math.IsNaN(x)
			if x > row[label] || x == row[label] && j < label {
				before++
			}
		}
		if !nan && before < 1 {
			sums[1]++
		}
		if !nan && before < 5 {
			sums[2]++
		}
	}
}

// logSumExp returns log Σ exp(row).
func logSumExp(row []float64) float64 {
	top, rest := math.Inf(-1), 0.0
	for _, x := range row {
		top = math.Max(top, x)
	}
	counted := false
	for _, x := range row {
		// its exponential is 1: Log1p preserves the digits of a small rest
		if x == top && !counted {
			counted = true
			continue
		}
		rest += math.Exp(x - top)
	}
	return top + math.Log1p(rest)
}

// class converts the label v to an index into n classes.
func class(v float64, n int) int {
	if c := int(v); float64(c) == v && c >= 0 && c < n {
		return c
	}
	panic(fmt.Sprintf("devicetest: label %v, want an integer from 0 to %d", v, n-1))
}
