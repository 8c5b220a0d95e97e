package devicetest

import (
	"math"

	"fspda/device"
)

// The kernels of a part of a window have the position of its first row as their last input. The
// kernels of whole windows define them.

func positionInput(c *device.Call, in [][]float32) {
	positions := 40
	switch c.Kernel {
	case device.EmbedStep:
		positions = c.Dims[3]
	case device.AttentionStep:
		positions = c.Dims[1]
	}
	in[len(in)-1][0] = float32((positions - c.Dims[0]) * 2 / 3)
}

func interpretEmbedStep(c *device.Call, in, out [][]float64) {
	n, at := c.Dims[2], int(in[3][0])
	for i := range out[0] {
		out[0][i] = in[1][class(in[0][i/n], c.Dims[1])*n+i%n] + in[2][at*n+i]
	}
}

func ropeStepCalls(add func(attr float64, dims ...int)) {
	add(10000, 1, 1, 2)
	add(10000, 5, 2, 4)
	add(500, 3, 3, 10)
}

// wholeRoPE returns the call of RoPE of a window that ends with the rows of a part, and its input.
func wholeRoPE(c *device.Call, in [][]float64) (whole *device.Call, x []float64, first int) {
	at, rows := int(in[1][0]), c.Dims[0]
	first = at * len(in[0]) / rows
	whole = &device.Call{Kernel: device.RoPE, Dims: []int{1, at + rows, c.Dims[1], c.Dims[2]}, Attr: c.Attr}
	return whole, append(make([]float64, first), in[0]...), first
}

func interpretRoPEStep(c *device.Call, in, out [][]float64) {
	whole, x, first := wholeRoPE(c, in)
	y := make([]float64, len(x))
	rotated(1)(whole, [][]float64{x}, [][]float64{y})
	copy(out[0], y[first:])
}

func ropeStepBounds(c *device.Call, in, want, b [][]float64) {
	whole, x, first := wholeRoPE(c, in)
	bound := make([]float64, len(x))
	ropeBounds(whole, [][]float64{x}, want, [][]float64{bound})
	copy(b[0], bound[first:])
}

func attentionStepCalls(add func(attr float64, dims ...int)) {
	add(0, 1, 1, 1, 1)
	add(0, 1, 9, 2, 3)
	add(0, 5, 17, 2, 8)
	add(0, 1, 300, 1, 17)
	add(0, 3, 64, 3, 32)
}

func attentionStepInputs(c *device.Call, in [][]float32) {
	positionInput(c, in)
	replace(in[0], func(x float32) float32 { return x / 4 })
	replace(in[1], func(x float32) float32 { return x / 4 })
}

// wholeAttention returns the call of Attention of the window that a cache and the rows of a part
// make, and its input, whose keys are the cache's times sqrt(h).
func wholeAttention(c *device.Call, in [][]float64) (whole *device.Call, qkv []float64) {
	rows, heads, h, at := c.Dims[0], c.Dims[2], c.Dims[3], int(in[2][0])
	row := heads * h
	for p := range at {
		qkv = append(qkv, make([]float64, row)...)
		for _, k := range in[1][2*p*row:][:row] {
			qkv = append(qkv, k*math.Sqrt(float64(h)))
		}
		qkv = append(qkv, in[1][2*p*row+row:][:row]...)
	}
	return &device.Call{Kernel: device.Attention, Dims: []int{1, at + rows, heads, h}}, append(qkv, in[0]...)
}

func interpretAttentionStep(c *device.Call, in, out [][]float64) {
	whole, qkv := wholeAttention(c, in)
	rows, row, at := c.Dims[0], c.Dims[2]*c.Dims[3], int(in[2][0])
	y := make([]float64, (at+rows)*row)
	interpretAttention(whole, [][]float64{qkv}, [][]float64{y, make([]float64, (at+rows)*c.Dims[2])})
	copy(out[0], y[at*row:])
	copy(out[1], in[1])
	for r := range rows {
		for j, k := range in[0][3*r*row+row:][:row] {
			out[1][2*(at+r)*row+j] = k / math.Sqrt(float64(c.Dims[3]))
		}
		copy(out[1][2*(at+r)*row+row:][:row], in[0][3*r*row+2*row:])
	}
}

func attentionStepBounds(c *device.Call, in, want, b [][]float64) {
	whole, qkv := wholeAttention(c, in)
	rows, row, at := c.Dims[0], c.Dims[2]*c.Dims[3], int(in[2][0])
	lse, y := make([]float64, (at+rows)*c.Dims[2]), make([]float64, (at+rows)*row)
	interpretAttention(whole, [][]float64{qkv}, [][]float64{y, lse})
	bound := make([]float64, len(y))
	attentionBounds(whole, [][]float64{qkv}, [][]float64{y, lse}, [][]float64{bound, make([]float64, len(lse))})
	copy(b[0], bound[at*row:])
	for i, w := range want[1] {
		b[1][i] = 2*unit*math.Abs(w) + smallest
	}
}
