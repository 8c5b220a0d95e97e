package main

import "fspda/tools/asm/arm64"

var latticeDeclarations = []declaration{
	{"latticeEncodeNEON", "func(dst, x *float32, n int, inverse float64, mask uint32) (sure bool)",
		"encodes n numbers, a positive multiple of 4."},
	{"latticeDecodeNEON", "func(dst, codes, ref *float32, n int, c *float64) (far int, largest float64, " +
		"sure bool)", "decodes n codes, a positive multiple of 4. c points to latticeConstants."},
}

// The bits of float64: how far from an integer a quotient may be rounded, and up to what size.
const latticeNear, latticeLimit = "0x3fdffffbce4217d3", "0x41d0000000000000"

// rounding rounds quotients, and keeps the largest distance to an integer and the largest integer. A
// maximum with NaN is NaN.
type rounding struct {
	*arm64.Func
	near, size arm64.Reg
}

func newRounding(f *arm64.Func) rounding {
	r := rounding{f, f.Vector(), f.Vector()}
	f.OpImm("movi.16b", 0, r.near)
	f.OpImm("movi.16b", 0, r.size)
	return r
}

// round returns the nearest integers.
func (r rounding) round(q arm64.Reg) arm64.Reg {
	whole, x := r.Vector(), r.Vector()
	r.Op("frintn", whole, q)
	r.Op("fabd.2d", q, q, whole)
	r.Op("fmax.2d", r.near, r.near, q)
	r.Op("fabs.2d", x, whole)
	r.Op("fmax.2d", r.size, r.size, x)
	return whole
}

// store writes whether all quotients were rounded surely.
func (r rounding) store(to string) {
	sure := r.Vector()
	for i, limit := range []string{latticeNear, latticeLimit} {
		w, x, largest := r.General(), r.Vector(), []arm64.Reg{r.near, r.size}[i]
		r.Set(w, "MOVD $"+limit+", R%d")
		r.Op("dup.x", x, w)
		r.Op("fcmgt.2d", x, x, largest)
		if i == 0 {
			r.Move(sure, x)
		} else {
			r.Op("and.16b", sure, sure, x)
		}
	}
	a, b := r.General(), r.General()
	r.OpImm("umov.d", 0, a, sure)
	r.OpImm("umov.d", 1, b, sure)
	r.Set(a, "AND R%r, R%r, R%d", a, b)
	r.Set(a, "AND $1, R%r, R%d", a)
	r.Do("MOVB R%r, "+to+"(FP)", a)
}

// doubles returns four numbers of a register as float64.
func doubles(f *arm64.Func, x arm64.Reg) [2]arm64.Reg {
	d := [2]arm64.Reg{f.Vector(), f.Vector()}
	f.Op("fcvtl", d[0], x)
	f.Op("fcvtl2", d[1], x)
	return d
}

// latticeEncode encodes four numbers at a time.
func latticeEncode(f *arm64.Func) {
	dst, x, n := argument(f, "dst", 0), argument(f, "x", 8), argument(f, "n", 16)
	inverse, mask, w := f.Vector(), f.Vector(), f.General()
	f.Op("dup.x", inverse, argument(f, "inverse", 24))
	f.Set(w, "MOVWU mask+32(FP), R%d")
	f.Op("dup.w", mask, w)
	r := newRounding(f)
	f.Set(n, "LSR $2, R%r, R%d", n)
	repeat(f, "encode", n, func() {
		in, codes := f.Vector(), f.Vector()
		f.Advance("ldr.q+", 16, in, x)
		q := doubles(f, in)
		for h := range q {
			f.Op("fmul.2d", q[h], q[h], inverse)
			q[h] = r.round(q[h])
			f.Op("fcvtzs", q[h], q[h])
		}
		f.Op("uzp1.4s", codes, q[0], q[1])
		f.Op("and.16b", codes, codes, mask)
		f.Op("scvtf.4s", codes, codes)
		f.OpImm("str.q", 0, codes, dst)
		increase(f, dst, 16)
	})
	r.store("sure+40")
	f.Return()
}

// latticeDecode decodes four codes at a time. Products with q and 1/q, which are powers of two, are
// exact, so that adding them in the same instruction rounds as the Go code does.
func latticeDecode(f *arm64.Func) {
	dst, codes, ref := argument(f, "dst", 0), argument(f, "codes", 8), argument(f, "ref", 16)
	n, c := argument(f, "n", 24), argument(f, "c", 32)
	k := vectors(f, 5)
	for i, v := range k {
		w := f.General()
		f.Set(w, "MOVD "+itoa(8*i)+"(R%r), R%d", c)
		f.Op("dup.x", v, w)
	}
	inverse, perColour, colours, side, far := k[0], k[1], k[2], k[3], k[4]
	r := newRounding(f)
	largest, many := f.Vector(), f.Vector()
	f.OpImm("movi.16b", 0, largest)
	f.OpImm("movi.16b", 0, many)
	f.Set(n, "LSR $2, R%r, R%d", n)
	repeat(f, "decode", n, func() {
		a, b, out := f.Vector(), f.Vector(), f.Vector()
		f.Advance("ldr.q+", 16, a, codes)
		f.Advance("ldr.q+", 16, b, ref)
		z, at := doubles(f, a), doubles(f, b)
		for h := range z {
			q, gap := f.Vector(), f.Vector()
			f.Op("fmul.2d", q, at[h], inverse)
			f.Op("fmls.2d", q, z[h], perColour)
			f.Op("fmla.2d", z[h], r.round(q), colours)
			f.Op("fmul.2d", gap, z[h], side)
			f.Op("fabd.2d", gap, gap, at[h])
			f.Op("fmax.2d", largest, largest, gap)
			f.Op("fcmgt.2d", gap, gap, far)
			f.Op("sub.2d", many, many, gap)
		}
		f.Op("fcvtn", out, z[0])
		f.Op("fcvtn2", out, z[1])
		f.OpImm("str.q", 0, out, dst)
		increase(f, dst, 16)
	})
	second, a, b := f.Vector(), f.General(), f.General()
	f.OpImm("umov.d", 0, a, many)
	f.OpImm("umov.d", 1, b, many)
	f.Set(a, "ADD R%r, R%r, R%d", a, b)
	f.Do("MOVD R%r, far+40(FP)", a)
	f.OpImm("dup.d", 1, second, largest)
	f.Op("fmax.2d", largest, largest, second)
	f.Do("FMOVD F%r, largest+48(FP)", largest)
	r.store("sure+56")
	f.Return()
}
