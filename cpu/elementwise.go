package cpu

// scale: y = a·x.
func scale(o *operands) error {
	o.eachRange(len(o.out[0]), scalePart)
	return nil
}

func scalePart(o *operands, part, of int) {
	from, to := portion(part, of, len(o.out[0]), perLine)
	times(o.out[0][from:to], float32(o.attr), o.in[0][from:to], passesCaches(o.out[0], o.in[0]))
}

// scaleBy: y = (a·s)·x.
func scaleBy(o *operands) error {
	times(o.out[0], float32(o.attr)*o.in[1][0], o.in[0], passesCaches(o.out[0], o.in[0]))
	return nil
}

// times writes a·x to y, which may be x; with stream past the caches, and then it may not.
func times(y []float32, a float32, x []float32, stream bool) {
	c := combination{}.plus(a, x)
	combine(y, &c, stream)
}

// add: y = a + b.
func add(o *operands) error {
	o.eachRange(len(o.out[0]), addPart)
	return nil
}

func addPart(o *operands, part, of int) {
	from, to := portion(part, of, len(o.out[0]), perLine)
	adds(o.out[0][from:to], o.in[0][from:to], o.in[1][from:to], passesCaches(o.out[0], o.in[0], o.in[1]))
}

// addsGo writes a + b to dst.
func addsGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

// addScaled: y = a + c·b.
func addScaled(o *operands) error {
	o.eachRange(len(o.out[0]), addScaledPart)
	return nil
}

func addScaledPart(o *operands, part, of int) {
	from, to := portion(part, of, len(o.out[0]), perLine)
	addScaleds(o.out[0][from:to], o.in[0][from:to], float32(o.attr), o.in[1][from:to], passesCaches(o.out[0], o.in[0],
		o.in[1]))
}

// addScaleds computes dst = a + c·b, the product rounded first; dst may be a or b. With stream it
// goes past the caches; then it may not.
func addScaleds(dst, a []float32, c float32, b []float32, stream bool) {
	sum := combination{}.plus(1, a).plus(c, b)
	combine(dst, &sum, stream)
}

// halfSquare: s = a/2·Σx².
func halfSquare(o *operands) error {
	x := o.in[0]
	o.out[0][0] = float32(o.attr / 2 * dot(x, x))
	return nil
}

// moveAverage: y = (1-momentum)·avg + momentum·(a·x), in float64 and rounded once at the end. There
// are few numbers: one for each channel.
func moveAverage(o *operands) error {
	x, avg, y := o.in[0], o.in[1], o.out[0]
	momentum := float64(o.in[2][0])
	for i, v := range x {
		y[i] = float32(float64((1-momentum)*float64(avg[i])) + float64(momentum*float64(o.attr*float64(v))))
	}
	return nil
}
