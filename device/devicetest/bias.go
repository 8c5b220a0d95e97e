package devicetest

import (
	"math"

	"fspda/device"
)

// biasKernels add a number to each channel.
var biasKernels = map[device.Kernel]language{
	device.AddBias:         {interpretBias, biasCalls, nil, relativeBounds(1)},
	device.AddBiasReLU:     {interpretBias, biasCalls, nil, relativeBounds(1)},
	device.AddBiasGrad:     {interpretBiasGrad, biasCalls, nil, biasGradBounds},
	device.AddBiasReLUGrad: {interpretBiasGrad, biasCalls, nil, biasGradBounds},
}

func biasCalls(add func(attr float64, dims ...int)) {
	for i, c := range widths {
		add(0, widths[(3*i+2)%len(widths)], c)
	}
	add(0, 1200, 5) // more than one block of sums
	add(0, 3, 2100)
	add(0, 130, 64)
}

func interpretBias(c *device.Call, in, out [][]float64) {
	for i, x := range in[0] {
		out[0][i] = x + in[1][i%c.Dims[1]]
		if c.Kernel == device.AddBiasReLU {
			out[0][i] = math.Max(out[0][i], 0)
		}
	}
}

func interpretBiasGrad(c *device.Call, in, out [][]float64) {
	db := out[len(out)-1]
	clear(db)
	for i, d := range in[len(in)-1] {
		if c.Kernel == device.AddBiasReLUGrad {
			if !(in[0][i] > 0) {
				d = 0
			}
			out[0][i] = d
		}
		db[i%c.Dims[1]] += d
	}
}

// biasGradBounds allows one rounding, and the error of a sum in float64.
func biasGradBounds(c *device.Call, in, want, b [][]float64) {
	last := len(want) - 1
	for i, d := range in[len(in)-1] {
		b[last][i%c.Dims[1]] += 0x1p-44 * math.Abs(d)
	}
	for j, w := range want[last] {
		b[last][j] += unit*math.Abs(w) + smallest
	}
}
