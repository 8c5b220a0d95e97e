package cpu

// scale: y = a·x.
func scale(o *operands) error {
	times(o.out[0], float32(o.attr), o.in[0])
	return nil
}

// scaleBy: y = (a·s)·x.
func scaleBy(o *operands) error {
	times(o.out[0], float32(o.attr)*o.in[1][0], o.in[0])
	return nil
}

func times(y []float32, a float32, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = a * v
	}
}

// add: y = a + b.
func add(o *operands) error {
	a, b, y := o.in[0], o.in[1], o.out[0]
	b, y = b[:len(a)], y[:len(a)]
	for i, v := range a {
		y[i] = v + b[i]
	}
	return nil
}

// addScaled: y = a + c·b.
func addScaled(o *operands) error {
	addScaleds(o.out[0], o.in[0], float32(o.attr), o.in[1])
	return nil
}

// addScaleds computes dst = a + c·b, the product rounded first; dst may be a or b.
func addScaleds(dst, a []float32, c float32, b []float32) {
	b, dst = b[:len(a)], dst[:len(a)]
	for i, v := range a {
		dst[i] = v + float32(c*b[i])
	}
}

// halfSquare: s = a/2·Σx².
func halfSquare(o *operands) error {
	x := o.in[0]
	o.out[0][0] = float32(o.attr / 2 * dot(x, x))
	return nil
}
