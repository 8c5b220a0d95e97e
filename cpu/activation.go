package cpu

import "math"

// sigmoid: y = 1/(1+exp(-x)). In float64 the exponential of any float32 argument that matters is finite, so this form needs no
// second one for large |x|.
func sigmoid(o *operands) error {
	x, y := o.in[0], o.out[0]
	var buffer [expBlock]float64
	for len(x) > 0 {
		e := buffer[:min(expBlock, len(x))]
		for i, v := range x[:len(e)] {
			e[i] = -float64(v)
		}
		exps(e)
		d := y[:len(e)]
		for i, v := range e {
			d[i] = float32(1 / (1 + v))
		}
		x, y = x[len(e):], y[len(e):]
	}
	return nil
}

// sigmoidGrad: dx = dy·y·(1-y).
func sigmoidGrad(o *operands) error {
	y, dy, dx := o.in[0], o.in[1], o.out[0]
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, v := range y {
		dx[i] = float32(float32(dy[i]*v) * (1 - v))
	}
	return nil
}

// relu: y = max(x, 0). A comparison with NaN is false, so NaN goes through; -0 becomes 0. The choice is made on the bits, as
// integers: the compiler then needs no branch, which for random signs is wrong half of the time.
func relu(o *operands) error {
	x, y := o.in[0], o.out[0]
	y = y[:len(x)]
	for i, v := range x {
		b := math.Float32bits(v)
		if v <= 0 {
			b = 0
		}
		y[i] = math.Float32frombits(b)
	}
	return nil
}

// reluGrad: dx = dy where y > 0, else 0.
func reluGrad(o *operands) error {
	y, dy, dx := o.in[0], o.in[1], o.out[0]
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, v := range y {
		b := uint32(0)
		if g := math.Float32bits(dy[i]); v > 0 {
			b = g
		}
		dx[i] = math.Float32frombits(b)
	}
	return nil
}
