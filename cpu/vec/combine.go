package vec

import "fspda/device"

// combineBlock is how many elements of a long combination are held at a time: 8 KB, well within the
// first-level cache.
const combineBlock = 2048

func combineRange(op *device.Op, from, to int, separate bool) {
	whole, terms := numbers(op.Out[0]), op.Terms
	switch d := whole[from:to]; {
	case len(terms) == 0:
		clear(d)
	case separate && len(terms) == 1 && terms[0].A == 1:
		copy(d, numbers(terms[0].V)[from:])
	case len(terms) > maxTerms:
		combineMany(d, terms, from, separate && termsNonTemporal(whole, terms))
	default:
		var c combination
		c.set(terms, from, to)
		if separate {
			combine(d, &c, termsNonTemporal(whole, terms))
		} else {
			combineAhead(d, &c)
		}
	}
}

// combineMany handles more terms than one pass does, block by block: a block of dst is written only
// after all terms have been read, so that dst may be any of them. d begins at number from.
func combineMany(d []float32, terms []device.Term, from int, stream bool) {
	var block [combineBlock]float32
	for i := 0; i < len(d); i += combineBlock {
		s := block[:min(combineBlock, len(d)-i)]
		for k := 0; k < len(terms); {
			var c combination
			if k > 0 {
				c = c.plus(1, s)
			}
			for ; c.terms < maxTerms && k < len(terms); k++ {
				c = c.plus(float32(terms[k].A), terms[k].V.(*Vector).Data[from+i:][:len(s)])
			}
			if k == len(terms) {
				combine(d[i:i+len(s)], &c, stream)
			} else {
				combine(s, &c, false)
			}
		}
	}
}

// termsNonTemporal reports whether to write d, the sum of at least one term, by non-temporal
// stores.
func termsNonTemporal(d []float32, terms []device.Term) bool {
	for _, t := range terms {
		if !nonTemporal(d, t.V.(*Vector).Data) {
			return false
		}
	}
	return true
}

// combineGo writes c to d: products and sums rounded one by one, from left to right. A factor of 1
// changes nothing.
//
// The loops below are plain on purpose: once the lengths are known to be equal the compiler checks
// no bounds in them. Unrolled by four over advancing slices they were slower.
func combineGo(d []float32, c *combination) {
	a, v := &c.a, &c.v
	switch c.terms {
	case 1:
		combine1(d, a[0], v[0])
	case 2:
		combine2(d, a[0], v[0], a[1], v[1])
	case 3:
		combine3(d, a[0], v[0], a[1], v[1], a[2], v[2])
	case 4:
		combine4(d, a[0], v[0], a[1], v[1], a[2], v[2], a[3], v[3])
	case 5:
		combine5(d, a[0], v[0], a[1], v[1], a[2], v[2], a[3], v[3], a[4], v[4])
	case 6:
		combine6(d, a[0], v[0], a[1], v[1], a[2], v[2], a[3], v[3], a[4], v[4], a[5], v[5])
	}
}

// combine1: d = a·x.
func combine1(d []float32, a float32, x []float32) {
	x = x[:len(d)]
	for i, v := range x {
		d[i] = a * v
	}
}

// combine2: d = a·x + b·y.
func combine2(d []float32, a float32, x []float32, b float32, y []float32) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i])
	}
}

// combine3: d = a·x + b·y + c·z.
func combine3(d []float32, a float32, x []float32, b float32, y []float32, c float32, z []float32) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i]) + float32(c*z[i])
	}
}

// combine4: d = a·x + b·y + c·z + e·w.
func combine4(d []float32, a float32, x []float32, b float32, y []float32, c float32, z []float32, e float32,
	w []float32) {
	x, y, z, w = x[:len(d)], y[:len(d)], z[:len(d)], w[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i]) + float32(c*z[i]) + float32(e*w[i])
	}
}

// combine5: d = a·x + b·y + c·z + e·w + f·v.
func combine5(d []float32, a float32,
	x []float32, b float32, y []float32, c float32, z []float32, e float32, w []float32, f float32, v []float32) {
	x, y, z, w, v = x[:len(d)], y[:len(d)], z[:len(d)], w[:len(d)], v[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i]) + float32(c*z[i]) + float32(e*w[i]) + float32(f*v[i])
	}
}

// combine6: d = a·x + b·y + c·z + e·w + f·v + g·u.
func combine6(d []float32, a float32, x []float32, b float32,
	y []float32, c float32, z []float32, e float32, w []float32, f float32, v []float32, g float32, u []float32) {
	x, y, z, w, v, u = x[:len(d)], y[:len(d)], z[:len(d)], w[:len(d)], v[:len(d)], u[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i]) + float32(c*z[i]) + float32(e*w[i]) + float32(f*v[i]) + float32(g*u[i])
	}
}
