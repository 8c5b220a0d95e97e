package main

import "fspda/tools/asm/arm64"

var resampleDeclarations = []declaration{
	{"sumLinesNEON", "func(dst *int16, src *uint8, stride, n int, weight *int16, taps, more int)",
		"is sumRowsGo for n numbers, a positive multiple of 32, and 1 to 4 weights. Where more is not 0 it " +
			"adds to dst."},
	{"sumColumnsNEON", "func(dst *uint8, line *int16, where *uint32, weights *int16, groups, pairs int)",
		"writes 12 bytes a group, and 4 behind the last."},
}

// mostTaps are the rows that a call sums.
const mostTaps = 4

// sumLines sums rows of pixels with weights, 32 numbers at a time. There is a loop for each number of
// rows, and for sums that begin with zero and with dst.
func sumLines(f *arm64.Func) {
	dst, src, stride := argument(f, "dst", 0), argument(f, "src", 8), argument(f, "stride", 16)
	n, weight := argument(f, "n", 24), argument(f, "weight", 32)
	taps, more := argument(f, "taps", 40), argument(f, "more", 48)
	f.Set(n, "LSR $5, R%r, R%d", n)
	var rows, weights [mostTaps]arm64.Reg
	for taken := 1; taken <= mostTaps; taken++ {
		k := taken - 1
		rows[k], weights[k] = f.General(), f.Vector()
		f.Move(rows[k], src)
		f.Op("ld1r.8h", weights[k], weight)
		f.Do("CMP $"+itoa(taken)+", R%r", taps)
		if taken < mostTaps {
			f.Jump("NE", "rows"+itoa(taken+1))
		}
		f.JumpNonzero(more, "more"+itoa(taken))
		for _, name := range []string{"first", "more"} {
			repeat(f, name+itoa(taken), n, func() {
				sumLine(f, dst, rows[:taken], weights[:taken], name == "more")
			})
			f.Return()
		}
		if taken < mostTaps {
			f.Label("rows" + itoa(taken+1))
			f.Set(src, "ADD R%r, R%r, R%d", stride, src)
			increase(f, weight, 2)
		}
	}
}

// sumLine sums 32 numbers.
func sumLine(f *arm64.Func, dst arm64.Reg, rows, weights []arm64.Reg, more bool) {
	sums := vectors(f, 4)
	if more {
		f.OpPair("ldp.q", 0, sums[0], sums[1], dst)
		f.OpPair("ldp.q", 32, sums[2], sums[3], dst)
	}
	for k, row := range rows {
		bytes := vectors(f, 2)
		f.OpPair("ldp.q+", 32, bytes[0], bytes[1], row)
		for i, s := range sums {
			x := f.Vector()
			f.OpImm([]string{"ushll.8h", "ushll2.8h"}[i%2], 7, x, bytes[i/2])
			f.Op("sqrdmulh", x, x, weights[k])
			if k == 0 && !more {
				sums[i] = x
				continue
			}
			f.Op("sqadd.8h", s, s, x)
		}
	}
	f.OpPair("stp.q", 0, sums[0], sums[1], dst)
	f.OpPair("stp.q", 32, sums[2], sums[3], dst)
	increase(f, dst, 64)
}

// pixels are those of a group of columns, in the order of their weights.
var pixels = [4]int{0, 2, 1, 3}

// columns sums two source pixels at a time for each of four: six numbers times six weights.
func columns(f *arm64.Func) {
	dst, line, where := argument(f, "dst", 0), argument(f, "line", 8), argument(f, "where", 16)
	weights, groups, pairs := argument(f, "weights", 24), argument(f, "groups", 32), argument(f, "pairs", 40)
	colours := f.Vector() // bytes 0, 1 and 2 of each four
	for i, v := range []string{"0x0908060504020100", "0x808080800e0d0c0a"} {
		w := f.General()
		f.Set(w, "MOVD $"+v+", R%d")
		if i == 0 {
			f.Op("fmov.d", colours, w)
		} else {
			f.OpImm("ins.d", 1, colours, w)
		}
	}
	repeat(f, "group", groups, func() {
		var at, sums [4]arm64.Reg
		for i := range at {
			at[i], sums[i] = f.General(), f.Vector()
			f.Set(at[i], "MOVWU "+itoa(4*i)+"(R%r), R%d", where)
			f.Set(at[i], "ADD R%r, R%r, R%d", line, at[i])
			f.OpImm("movi.16b", 0, sums[i])
		}
		left := f.General()
		f.Move(left, pairs)
		repeat(f, "pair", left, func() {
			w := vectors(f, 4)
			f.OpPair("ldp.q+", 32, w[0], w[1], weights)
			f.OpPair("ldp.q+", 32, w[2], w[3], weights)
			for k, i := range pixels {
				x := f.Vector()
				f.Advance("ldr.q+", 12, x, at[i])
				f.Op("sqrdmulh", x, x, w[k])
				f.Op("sqadd.8h", sums[i], sums[i], x)
			}
		})
		for i := range sums { // the second source pixel to the first
			x := f.Vector()
			f.OpImm("ext.16b", 6, x, sums[i], sums[i])
			f.Op("sqadd.8h", sums[i], sums[i], x)
		}
		bytes := f.Vector()
		f.Op("zip1.2d", sums[0], sums[0], sums[1])
		f.Op("zip1.2d", sums[2], sums[2], sums[3])
		f.OpImm("sqrshrun", 7, bytes, sums[0])
		f.OpImm("sqrshrun2", 7, bytes, sums[2])
		f.Op("tbl", bytes, bytes, colours)
		f.OpImm("stur.q", 0, bytes, dst)
		increase(f, where, 16)
		increase(f, dst, 12)
	})
	f.Return()
}
