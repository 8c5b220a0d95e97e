package cpu

import "fspda/device"

// combineBlock is how many elements of a long combination are held at a time: 2 KB, well inside the first cache.
const combineBlock = 512

// Combine computes dst = Σ Aₖ·Vₖ in one pass, products and sums rounded one by one to float32 from left to right. dst may be
// any of the Vₖ. It panics if the lengths differ.
func (*Device) Combine(dst device.Vector, terms ...device.Term) {
	d := data("Combine", dst)
	for _, t := range terms {
		checkLen("Combine", "a term", len(data("Combine", t.V)), len(d))
	}
	v := func(k int) []float32 { return terms[k].V.(*Vector).Data }
	a := func(k int) float32 { return float32(terms[k].A) }
	switch len(terms) {
	case 0:
		clear(d)
	case 1:
		combine1(d, a(0), v(0))
	case 2:
		if a(0) == 1 {
			combineUnit2(d, v(0), a(1), v(1))
		} else {
			combine2(d, a(0), v(0), a(1), v(1))
		}
	case 3:
		if a(0) == 1 {
			combineUnit3(d, v(0), a(1), v(1), a(2), v(2))
		} else {
			combine3(d, a(0), v(0), a(1), v(1), a(2), v(2))
		}
	case 4:
		combine4(d, a(0), v(0), a(1), v(1), a(2), v(2), a(3), v(3))
	case 5:
		combine5(d, a(0), v(0), a(1), v(1), a(2), v(2), a(3), v(3), a(4), v(4))
	case 6:
		combine6(d, a(0), v(0), a(1), v(1), a(2), v(2), a(3), v(3), a(4), v(4), a(5), v(5))
	default:
		combineMany(d, terms)
	}
}

// The loops below are plain on purpose: once the lengths are known to be equal the compiler checks no bounds in them, and the
// memory, not the arithmetic, sets their speed. Unrolled by four over advancing slices they were slower.

// combine1: d = a·x.
func combine1(d []float32, a float32, x []float32) {
	if a == 1 {
		copy(d, x)
		return
	}
	x = x[:len(d)]
	for i, v := range x {
		d[i] = a * v
	}
}

// combineUnit2: d = x + b·y, the shape of most steps of an algorithm.
func combineUnit2(d, x []float32, b float32, y []float32) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + float32(b*y[i])
	}
}

// combine2: d = a·x + b·y.
func combine2(d []float32, a float32, x []float32, b float32, y []float32) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i])
	}
}

// combineUnit3: d = x + b·y + c·z.
func combineUnit3(d, x []float32, b float32, y []float32, c float32, z []float32) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = x[i] + float32(b*y[i]) + float32(c*z[i])
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
func combine4(d []float32, a float32, x []float32, b float32, y []float32, c float32, z []float32, e float32, w []float32) {
	x, y, z, w = x[:len(d)], y[:len(d)], z[:len(d)], w[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i]) + float32(c*z[i]) + float32(e*w[i])
	}
}

// combine5: d = a·x + b·y + c·z + e·w + f·v.
func combine5(d []float32, a float32, x []float32, b float32, y []float32, c float32, z []float32, e float32, w []float32,
	f float32, v []float32) {
	x, y, z, w, v = x[:len(d)], y[:len(d)], z[:len(d)], w[:len(d)], v[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i]) + float32(c*z[i]) + float32(e*w[i]) + float32(f*v[i])
	}
}

// combine6: d = a·x + b·y + c·z + e·w + f·v + g·u.
func combine6(d []float32, a float32, x []float32, b float32, y []float32, c float32, z []float32, e float32, w []float32,
	f float32, v []float32, g float32, u []float32) {
	x, y, z, w, v, u = x[:len(d)], y[:len(d)], z[:len(d)], w[:len(d)], v[:len(d)], u[:len(d)]
	for i := range d {
		d[i] = float32(a*x[i]) + float32(b*y[i]) + float32(c*z[i]) + float32(e*w[i]) + float32(f*v[i]) + float32(g*u[i])
	}
}

// combineMany takes more than six terms, block by block: a block of dst is written only when all terms have been read, so
// that dst may be any of them.
func combineMany(d []float32, terms []device.Term) {
	var block [combineBlock]float32
	for i := 0; i < len(d); i += combineBlock {
		s := block[:min(combineBlock, len(d)-i)]
		a := func(k int) float32 { return float32(terms[k].A) }
		v := func(k int) []float32 { return terms[k].V.(*Vector).Data[i : i+len(s)] }
		combine6(s, a(0), v(0), a(1), v(1), a(2), v(2), a(3), v(3), a(4), v(4), a(5), v(5))
		k := 6
		for ; k+1 < len(terms); k += 2 {
			combineUnit3(s, s, a(k), v(k), a(k+1), v(k+1))
		}
		if k < len(terms) {
			combineUnit2(s, s, a(k), v(k))
		}
		copy(d[i:], s)
	}
}
