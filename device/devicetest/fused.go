package devicetest

import (
	"math"

	"fspda/device"
	"fspda/internal/rng"
)

// A fused layer is a matrix kernel followed by an element-wise kernel on its first output. Its
// reference, shapes and bounds are derived from those two.

// parts splits a fused call into the matrix kernel, the element-wise kernel, and the operand that
// only the latter reads, or -1.
func parts(c *device.Call) (matrix, after device.Kernel, extra int) {
	switch c.Kernel {
	case device.LinearSigmoid:
		return device.Linear, device.Sigmoid, -1
	case device.LinearReLU:
		return device.Linear, device.ReLU, -1
	case device.LinearGradXSigmoid:
		return device.LinearGradX, device.SigmoidGrad, 2
	case device.LinearGradXReLU:
		return device.LinearGradX, device.ReLUGrad, 2
	case device.LinearGradWDecay:
		return device.LinearGradW, device.AddScaled, 2
	}
	panic("devicetest: " + string(c.Kernel) + " is not a fused layer")
}

// matrixPart returns the matrix kernel of a fused layer as a call.
func matrixPart(c *device.Call) *device.Call {
	matrix, _, _ := parts(c)
	return &device.Call{Kernel: matrix, Dims: c.Dims, Attr: c.Attr}
}

// fusedShape is shape for a fused layer: the operands of its matrix kernel, and one of the size of
// the first output.
func fusedShape(c *device.Call) (in, out []int) {
	in, out = shape(matrixPart(c))
	if _, _, extra := parts(c); extra >= 0 {
		in = append(in, out[0])
	}
	return in, out
}

func init() { // init breaks the initialization cycle of the table
	for _, k := range []device.Kernel{device.LinearSigmoid, device.LinearReLU, device.LinearGradXSigmoid,
		device.LinearGradXReLU, device.LinearGradWDecay} {
		interpreters[k] = interpretFused
	}
}

func interpretFused(c *device.Call, in, out [][]float64) {
	_, after, extra := parts(c)
	only := in
	if extra >= 0 {
		only = in[:extra]
	}
	Interpret(matrixPart(c), only, out)
	x := [][]float64{append([]float64{}, out[0]...)}
	switch after {
	case device.SigmoidGrad, device.ReLUGrad:
		x = [][]float64{in[extra], x[0]}
	case device.AddScaled:
		x = append(x, in[extra])
	}
	Interpret(&device.Call{Kernel: after, Dims: []int{len(out[0])}, Attr: c.Attr}, x, out[:1])
}

// fusedAttr returns the Attr of the tested calls: only weight decay uses one.
func fusedAttr(k device.Kernel) float64 {
	if k == device.LinearGradWDecay {
		return -0.3
	}
	return 0
}

// fusedInputs scales weights so that sigmoids do not saturate, and makes activations where a kernel
// expects them.
func fusedInputs(c *device.Call, in [][]float32, s rng.Stream) {
	switch c.Kernel {
	case device.LinearSigmoid:
		for i := range in[1] {
			in[1][i] /= float32(c.Dims[2])
		}
	case device.LinearGradXSigmoid:
		for i := range in[2] {
			in[2][i] = s.Float32()
		}
	case device.LinearGradXReLU:
		for i := range in[2] {
			in[2][i] = max(in[2][i], 0)
		}
	}
}

// fusedBounds propagates the bound of the matrix kernel through the element-wise kernel, by the
// slope of the latter.
func fusedBounds(c *device.Call, in, want, b [][]float64) {
	_, _, extra := parts(c)
	only := in
	if extra >= 0 {
		only = in[:extra]
	}
	matrix := matrixPart(c)
	exact := make([][]float64, len(want))
	for i := range want {
		exact[i] = make([]float64, len(want[i]))
	}
	Interpret(matrix, only, exact)
	copy(b, bounds(matrix, only, exact))
	for j, w := range want[0] {
		switch c.Kernel {
		case device.LinearSigmoid: // the slope is at most 1/4
			b[0][j] = b[0][j]/4 + 8*unit*math.Abs(w) + smallest
		case device.LinearGradXSigmoid:
			y := in[extra][j]
			b[0][j] = b[0][j]*y*(1-y) + 8*unit*math.Abs(w) + smallest
		case device.LinearGradWDecay:
			b[0][j] += 4*unit*(math.Abs(exact[0][j])+math.Abs(c.Attr*in[extra][j])) + smallest
		}
	}
}
