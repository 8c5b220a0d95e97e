package main

import (
	"strconv"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"fspda/tools/asm/arm64"
)

func itoa(i int) string { return strconv.Itoa(i) }

var rowDeclarations = []declaration{
	{"fromYCbCrNEON", "func(dst, ys, cbs, crs *uint8, groups int)", "is fromYCbCrGo for groups of 16 pixels."},
	{"weighSumNEON", "func(dst *int16, near, far *uint8, groups int)", "is weighSumGo for groups of 16 samples."},
	{"interpolateNEON", "func(dst *uint8, s *int16, left, right, shift, groups int)",
		"is interpolateGo for groups of 16 sums, from s[1] on."},
}

// The factors of fromYCbCrGo, each four times, and the half that is added.
var colourFactors = []uint32{91881, 22554, 46802, 116130, 1 << 15}

const colourName = "imagesColours"

// colourData writes the factors.
func colourData(c *build.Context) {
	c.StaticGlobal(colourName)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range colourFactors {
		for k := range 4 {
			c.AddDatum(16*i+4*k, operand.U32(v))
		}
	}
}

// fromYCbCr converts 16 pixels at a time, four in a register of 32 bits.
func fromYCbCr(f *arm64.Func) {
	dst, ys, cbs, crs := argument(f, "dst", 0), argument(f, "ys", 8), argument(f, "cbs", 16), argument(f, "crs", 24)
	groups, table := argument(f, "groups", 32), f.General()
	f.Set(table, "MOVD $"+colourName+"<>(SB), R%d")
	k := vectors(f, len(colourFactors))
	for i, v := range k {
		f.OpImm("ldr.q", 16*i, v, table)
	}
	red, greenB, greenR, blue, half := k[0], k[1], k[2], k[3], k[4]
	middle := f.Vector()
	f.OpImm("movi.16b", 128, middle)
	repeat(f, "group", groups, func() {
		var in [3][4]arm64.Reg // y, cb - 128 and cr - 128
		for i, from := range []arm64.Reg{ys, cbs, crs} {
			bytes := f.Vector()
			f.Advance("ldr.q+", 16, bytes, from)
			if i == 0 {
				in[i] = widened(f, bytes, "uxtl")
				continue
			}
			f.Op("eor.16b", bytes, bytes, middle) // subtracts 128, with a sign
			in[i] = widened(f, bytes, "sxtl")
		}
		colour := func(add func(sum arm64.Reg, i int)) arm64.Reg {
			var four [4]arm64.Reg
			for i := range four {
				four[i] = f.Vector()
				f.Move(four[i], half)
				add(four[i], i)
				f.OpImm("sshr.4s", 16, four[i], four[i])
				f.Op("add.4s", four[i], four[i], in[0][i])
			}
			return clamped(f, four)
		}
		cb, cr := in[1], in[2]
		r := colour(func(s arm64.Reg, i int) { f.Op("mla.4s", s, cr[i], red) })
		g := colour(func(s arm64.Reg, i int) {
			f.Op("mls.4s", s, cb[i], greenB)
			f.Op("mls.4s", s, cr[i], greenR)
		})
		b := colour(func(s arm64.Reg, i int) { f.Op("mla.4s", s, cb[i], blue) })
		f.StoreGroup("st3.16b", dst, r, g, b)
		increase(f, dst, 48)
	})
	f.Return()
}

// widened returns 16 bytes as integers of 32 bits, with a sign (sxtl) or without (uxtl).
func widened(f *arm64.Func, bytes arm64.Reg, how string) (four [4]arm64.Reg) {
	for h, op := range []string{".8h", "2.8h"} {
		words := f.Vector()
		f.Op(how+op, words, bytes)
		four[2*h], four[2*h+1] = f.Vector(), f.Vector()
		f.Op(how+".4s", four[2*h], words)
		f.Op(how+"2.4s", four[2*h+1], words)
	}
	return four
}

// clamped returns 16 integers of 32 bits as bytes, from 0 to 255.
func clamped(f *arm64.Func, four [4]arm64.Reg) arm64.Reg {
	low, high, bytes := f.Vector(), f.Vector(), f.Vector()
	f.Op("sqxtun.4h", low, four[0])
	f.Op("sqxtun2.8h", low, four[1])
	f.Op("sqxtun.4h", high, four[2])
	f.Op("sqxtun2.8h", high, four[3])
	f.Op("uqxtn.8b", bytes, low)
	f.Op("uqxtn2.16b", bytes, high)
	return bytes
}

// weighSum adds 16 samples at a time.
func weighSum(f *arm64.Func) {
	dst, near, far, groups := argument(f, "dst", 0), argument(f, "near", 8), argument(f, "far", 16), argument(f,
		"groups", 24)
	three, w := f.Vector(), f.General()
	f.Set(w, "MOVD $3, R%d")
	f.Op("dup.wh", three, w)
	repeat(f, "group", groups, func() {
		a, b := f.Vector(), f.Vector()
		f.Advance("ldr.q+", 16, a, near)
		f.Advance("ldr.q+", 16, b, far)
		sums := vectors(f, 2)
		for h, op := range []string{"uxtl.8h", "uxtl2.8h"} {
			x := f.Vector()
			f.Op(op, x, a)
			f.Op(op, sums[h], b)
			f.Op("mla.8h", sums[h], x, three)
		}
		f.OpPair("stp.q", 0, sums[0], sums[1], dst)
		increase(f, dst, 32)
	})
	f.Return()
}

// interpolate writes 32 samples for 16 sums at a time.
func interpolate(f *arm64.Func) {
	dst, s, groups := argument(f, "dst", 0), argument(f, "s", 8), argument(f, "groups", 40)
	three, w := f.Vector(), f.General()
	f.Set(w, "MOVD $3, R%d")
	f.Op("dup.wh", three, w)
	var rounds [2]arm64.Reg
	for i, name := range []string{"left", "right"} {
		rounds[i] = f.Vector()
		f.Op("dup.wh", rounds[i], argument(f, name, 16+8*i))
	}
	shift, back := argument(f, "shift", 32), f.Vector()
	f.Set(shift, "NEG R%r, R%d", shift)
	f.Op("dup.wh", back, shift) // a shift to the left by a negative number
	repeat(f, "group", groups, func() {
		var bytes [2]arm64.Reg
		for i := range bytes {
			bytes[i] = f.Vector()
		}
		for h, narrow := range []string{"xtn.8b", "xtn2.16b"} {
			middle := f.Vector()
			f.OpImm("ldur.q", 16*h+2, middle, s)
			for i := range bytes { // the sums on the left, and those on the right
				x, beside := f.Vector(), f.Vector()
				f.OpImm("ldur.q", 16*h+4*i, beside, s)
				f.Op("add.8h", x, beside, rounds[i])
				f.Op("mla.8h", x, middle, three)
				f.Op("sshl.8h", x, x, back)
				f.Op(narrow, bytes[i], x)
			}
		}
		f.StoreGroup("st2.16b", dst, bytes[:]...)
		increase(f, s, 32)
		increase(f, dst, 32)
	})
	f.Return()
}
