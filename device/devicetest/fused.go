package devicetest

import (
	"math"
	"slices"

	"fspda/device"
)

// A fused layer is a matrix kernel followed by an element-wise kernel on its first output. Its
// reference, shapes and bounds are derived from those two.

// fusedLayers has, for each fused kernel, the matrix kernel, the element-wise kernel, and the number
// of inputs of the former; the latter reads the others.
var fusedLayers = map[device.Kernel]struct {
	matrix, after device.Kernel
	inputs        int
}{
	device.LinearSigmoid:      {device.Linear, device.Sigmoid, 3},
	device.LinearReLU:         {device.Linear, device.ReLU, 3},
	device.LinearGradXSigmoid: {device.LinearGradX, device.SigmoidGrad, 2},
	device.LinearGradXReLU:    {device.LinearGradX, device.ReLUGrad, 2},
	device.LinearGradWDecay:   {device.LinearGradW, device.AddScaled, 2},
}

// matrixPart returns the matrix kernel of a fused layer as a call.
func matrixPart(c *device.Call) *device.Call {
	return &device.Call{Kernel: fusedLayers[c.Kernel].matrix, Dims: c.Dims, Attr: c.Attr}
}

func init() { // init breaks the initialization cycle of the table
	for k := range fusedLayers {
		interpreters[k] = interpretFused
	}
	for _, k := range device.Kernels() {
		if isNorm(k) {
			interpreters[k] = interpretNorm
		}
	}
}

func interpretFused(c *device.Call, in, out [][]float64) {
	layer := fusedLayers[c.Kernel]
	Interpret(matrixPart(c), in[:layer.inputs], out)
	x := append([][]float64{slices.Clone(out[0])}, in[layer.inputs:]...)
	if layer.after != device.AddScaled {
		slices.Reverse(x) // the gradient of an activation reads its output first
	}
	Interpret(&device.Call{Kernel: layer.after, Dims: []int{len(out[0])}, Attr: c.Attr}, x, out[:1])
}

// fusedBounds propagates the bound of the matrix kernel through the element-wise kernel, by the
// slope of the latter.
func fusedBounds(c *device.Call, in, want, b [][]float64) {
	matrix, only, others := matrixPart(c), in[:fusedLayers[c.Kernel].inputs], in[fusedLayers[c.Kernel].inputs:]
	_, sizes := shape(c)
	exact := zeros(sizes)
	Interpret(matrix, only, exact)
	copy(b, bounds(matrix, only, exact))
	for j, w := range want[0] {
		switch c.Kernel {
		case device.LinearSigmoid: // the slope is at most 1/4
			b[0][j] = b[0][j]/4 + 8*unit*math.Abs(w) + smallest
		case device.LinearGradXSigmoid:
			y := others[0][j]
			b[0][j] = b[0][j]*y*(1-y) + 8*unit*math.Abs(w) + smallest
		case device.LinearGradWDecay:
			b[0][j] += 4*unit*(math.Abs(exact[0][j])+math.Abs(c.Attr*others[0][j])) + smallest
		}
	}
}
