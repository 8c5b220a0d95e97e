package main

import "fspda/tools/asm/arm64"

var normalizeDeclarations = []declaration{
	{"normalizeNEON", "func(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)",
		"writes dst[i] = scale·pixels[i] + shift, the product rounded first, for n pixels, a multiple of 16. " +
			"It prefetches n bytes at ahead, which need not be valid."},
	{"patternNEON", "func(dst *float32, pixels *uint8, n int, p *float32)",
		"writes dst[i] = scale[i mod 48]·pixels[i] + shift[i mod 48] for n pixels, a positive multiple of 48. p " +
			"points to scale and shift, whose numbers repeat after 12."},
}

// normalize converts 16 pixels at a time.
func normalize(f *arm64.Func) {
	dst, pixels, n, ahead := argument(f, "dst", 0), argument(f, "pixels", 8), argument(f, "n", 16), argument(f, "ahead",
		32)
	scale, shift := f.Vector(), f.Vector()
	for i, name := range []string{"scale+24", "shift+28"} {
		x := f.Vector()
		f.Set(x, "FMOVS "+name+"(FP), F%d")
		f.OpImm("dup.s", 0, []arm64.Reg{scale, shift}[i], x)
	}
	f.Set(n, "LSR $4, R%r, R%d", n)
	repeat(f, "pixels", n, func() {
		f.Do("PRFM (R%r), PLDL1KEEP", ahead)
		convert(f, dst, pixels, 0, func(int) (a, b arm64.Reg) { return scale, shift })
		increase(f, ahead, 16)
	})
	f.Return()
}

// convert writes 16 pixels, which are the first or further ones of a pattern, and moves on.
func convert(f *arm64.Func, dst, pixels arm64.Reg, first int, factors func(four int) (scale, shift arm64.Reg)) {
	bytes := f.Vector()
	f.Advance("ldr.q+", 16, bytes, pixels)
	four := widened(f, bytes, "uxtl")
	for i, v := range four {
		scale, shift := factors(first + i)
		f.Op("scvtf.4s", v, v)
		f.Op("fmul.4s", v, v, scale)
		f.Op("fadd.4s", v, v, shift)
	}
	f.OpPair("stp.q", 0, four[0], four[1], dst)
	f.OpPair("stp.q", 32, four[2], four[3], dst)
	increase(f, dst, 64)
}

// pattern converts 48 pixels at a time.
func pattern(f *arm64.Func) {
	dst, pixels, n, p := argument(f, "dst", 0), argument(f, "pixels", 8), argument(f, "n", 16), argument(f, "p", 24)
	const most, period = 48, 3 // numbers, and registers after which they repeat
	scale, shift := vectors(f, period), vectors(f, period)
	for i := range period {
		f.OpImm("ldr.q", 16*i, scale[i], p)
		f.OpImm("ldr.q", 4*most+16*i, shift[i], p)
	}
	f.Label("pixels")
	for first := 0; first < most/4; first += 4 {
		convert(f, dst, pixels, first, func(four int) (a, b arm64.Reg) {
			return scale[four%period], shift[four%period]
		})
	}
	f.Flags(n, "SUBS $48, R%r, R%d", n)
	f.Jump("NE", "pixels")
	f.Return()
}
