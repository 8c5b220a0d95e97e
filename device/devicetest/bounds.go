package devicetest

import (
	"math"

	"fspda/device"
)

const (
	unit = 0x1p-24 // the largest relative error of one rounding to float32
	// the smallest normal float32: smaller exponentials may be flushed to 0
	smallest = 0x1p-126
)

// bounds returns the largest allowed error of each element of each output. want is the float64
// result for the inputs in. A bound counts the roundings of a reasonable float32 implementation, in
// any order of summation.
func bounds(c *device.Call, in, want [][]float64) [][]float64 {
	_, sizes := shape(c)
	b := zeros(sizes)
	relative := func(i int, units float64) {
		for j, w := range want[i] {
			b[i][j] = units*unit*math.Abs(w) + smallest
		}
	}
	switch c.Kernel {
	case device.Linear:
		sumBound(c, in, b, c.Dims[2])
	case device.LinearGradX:
		sumBound(c, in, b, c.Dims[1])
	case device.LinearGradW:
		sumBound(c, in, b, c.Dims[0])
		// db is accumulated in float64: one rounding, plus the float64 error relative to the sum of
		// absolute values.
		for j, w := range want[1] {
			b[1][j] = unit*math.Abs(w) + b[1][j]*0x1p-28
		}
	case device.Sigmoid, device.SigmoidGrad:
		relative(0, 8)
	case device.SoftmaxCrossEntropy, device.SoftmaxCrossEntropyMixed:
		lossBounds(c, in, want, b)
	case device.Score:
		b[0][0] = unit*math.Abs(want[0][0]) + float64(c.Dims[0])*expUnits(in[0])*unit
	case device.Add:
		relative(0, 1)
	case device.HalfSquare, device.AvgPoolGrad:
		relative(0, 2)
	case device.Scale, device.ScaleBy:
		relative(0, 4)
	case device.AddScaled: // the sum may be smaller than the rounded terms
		relative(0, 4)
		for j := range b[0] {
			b[0][j] += 4 * unit * (math.Abs(in[0][j]) + math.Abs(c.Attr*in[1][j]))
		}
	case device.MoveAverage: // computed in float64, which still rounds the terms
		relative(0, 1)
		for j, avg := range in[1] {
			b[0][j] += 0x1p-50 * (math.Abs(avg) + math.Abs(c.Attr*in[0][j]))
		}
	case device.LinearSigmoid, device.LinearReLU, device.LinearGradXSigmoid, device.LinearGradXReLU,
		device.LinearGradWDecay:
		fusedBounds(c, in, want, b)
	case device.Conv, device.ConvGradX, device.ConvGradW:
		sumBound(c, in, b, convProducts(c))
	case device.MaxPoolGrad:
		maxPoolGradBounds(c, in, b)
	case device.AvgPool:
		avgPoolBounds(c, in, want, b)
	default:
		if isNorm(c.Kernel) {
			normBounds(c, in, want, b)
		} else if l, ok := languageKernels[c.Kernel]; ok {
			l.bounds(c, in, want, b)
		}
	}
	return b
}

// sumBound fills b with the bound of sums of k products in float32, in any order: (k+2) roundings
// of the sum of absolute values.
func sumBound(c *device.Call, in, b [][]float64, k int) {
	positive := make([][]float64, len(in))
	for i := range in {
		positive[i] = make([]float64, len(in[i]))
		for j, v := range in[i] {
			positive[i][j] = math.Abs(v)
		}
	}
	Interpret(c, positive, b)
	for i := range b {
		for j := range b[i] {
			b[i][j] = b[i][j]*float64(k+2)*unit + smallest
		}
	}
}

// lossBounds is for the cross entropies. The relative error of an exponential is the absolute error
// of its argument.
func lossBounds(c *device.Call, in, want, b [][]float64) {
	m, n := c.Dims[0], c.Dims[1]
	units := expUnits(in[0])
	b[0][0] = unit * (units + 2*math.Abs(want[0][0]))
	for i := range m {
		weights := classWeights(c, in[1], i)
		for j := range n {
			at := i*n + j
			p := want[1][at]*float64(m) + c.Attr/float64(n) + weights[j]*(1-c.Attr)
			b[1][at] = unit*(units*p/float64(m)+2*math.Abs(want[1][at])) + smallest
		}
	}
}

// expUnits returns the relative error, in units, of exp(x-y) for two of the logits.
func expUnits(logits []float64) float64 {
	low, high := logits[0], logits[0]
	for _, x := range logits {
		low, high = math.Min(low, x), math.Max(high, x)
	}
	return 2*(high-low) + 16
}

// rounded returns the output of a kernel whose every rounding is specified, or nil for the others.
// It ensures that plans that fuse such kernels differently agree to the last bit.
func rounded(c *device.Call, in [][]float32) []float32 {
	a := float32(c.Attr)
	y := make([]float32, len(in[0]))
	for i, x := range in[0] {
		switch c.Kernel {
		case device.ReLU:
			y[i] = max(x, 0)
		case device.ReLUGrad:
			if x > 0 {
				y[i] = in[1][i]
			}
		case device.Scale:
			y[i] = a * x
		case device.ScaleBy:
			y[i] = float32(a*in[1][0]) * x
		case device.Add:
			y[i] = x + in[1][i]
		case device.AddScaled:
			y[i] = x + float32(a*in[1][i])
		default:
			return nil
		}
	}
	return y
}
