package main

import "fspda/tools/asm/arm64"

var sumRowsDeclaration = declaration{"sumRowsNEON",
	"func(dst *float32, n int, a *float32, terms int, v *float32, stride int)",
	"writes dst[i] = Σ a[k]·v[k·stride+i] for 1 <= n <= 64 numbers and at least one term, products and sums " +
		"rounded one by one. It may compute the last numbers twice."}

// columnWidths are the registers of four columns that are summed at a time.
var columnWidths = []int{16, 8, 4, 2, 1}

// sumRows sums as many columns at a time as there are, and the last four again where fewer are left.
func sumRows(f *arm64.Func) {
	dst, n, a := argument(f, "dst", 0), argument(f, "n", 8), argument(f, "a", 16)
	terms, v, stride := argument(f, "terms", 24), argument(f, "v", 32), argument(f, "stride", 40)
	four := f.General()
	f.Set(four, "MOVD $4, R%d")
	f.Set(stride, "LSL $2, R%r, R%d", stride)
	f.Do("CMP $4, R%r", n)
	f.Jump("LT", "few")
	for i, width := range columnWidths {
		next := "rest"
		if i+1 < len(columnWidths) {
			next = "columns" + itoa(4*columnWidths[i+1])
		}
		f.Label("columns" + itoa(4*width))
		f.Do("CMP $"+itoa(4*width)+", R%r", n)
		f.Jump("LT", next)
		sums, at, row, left := vectors(f, width), f.General(), f.General(), f.General()
		for _, s := range sums {
			f.OpImm("movi.16b", 0, s)
		}
		f.Move(at, a)
		f.Move(row, v)
		f.Move(left, terms)
		repeat(f, "terms"+itoa(4*width), left, func() { addTerm(f, sums, at, row, four, stride) })
		storeAll(f, sums, dst)
		increase(f, dst, 16*width)
		increase(f, v, 16*width)
		f.Flags(n, "SUBS $"+itoa(4*width)+", R%r, R%d", n)
	}
	f.Label("rest")
	f.JumpZero(n, "done")
	last := f.General() // the bytes up to the last four numbers
	f.Set(last, "SUB $4, R%r, R%d", n)
	f.Set(last, "LSL $2, R%r, R%d", last)
	f.Set(dst, "ADD R%r, R%r, R%d", last, dst)
	f.Set(v, "ADD R%r, R%r, R%d", last, v)
	f.Move(n, four)
	f.Jump("", "columns4")

	fewColumns(f, dst, n, a, terms, v, four, stride)
	f.Label("done")
	f.Return()
}

// storeAll stores one register or pairs of them.
func storeAll(f *arm64.Func, sums []arm64.Reg, dst arm64.Reg) {
	if len(sums) == 1 {
		f.OpImm("str.q", 0, sums[0], dst)
		return
	}
	for k := 0; k < len(sums); k += 2 {
		f.OpPair("stp.q", 16*k, sums[k], sums[k+1], dst)
	}
}

// fewColumns sums one to three columns, one after the other.
func fewColumns(f *arm64.Func, dst, n, a, terms, v, four, stride arm64.Reg) {
	repeat(f, "few", n, func() {
		sum, at, row, left := f.Vector(), f.General(), f.General(), f.General()
		f.OpImm("movi.16b", 0, sum)
		f.Move(at, a)
		f.Move(row, v)
		f.Move(left, terms)
		repeat(f, "terms1", left, func() {
			x, y := f.Vector(), f.Vector()
			f.Advance("ld1r.4s+", 0, x, at, four)
			f.OpImm("ldr.s", 0, y, row)
			f.Set(row, "ADD R%r, R%r, R%d", stride, row)
			f.Op("fmul.4s", y, y, x)
			f.Op("fadd.4s", sum, sum, y)
		})
		f.OpImm("str.s", 0, sum, dst)
		increase(f, dst, 4)
		increase(f, v, 4)
	})
}

// addTerm adds a number times a row to sums of four numbers each, and moves on.
func addTerm(f *arm64.Func, sums []arm64.Reg, at, row, four, stride arm64.Reg) {
	x := f.Vector()
	f.Advance("ld1r.4s+", 0, x, at, four)
	y := vectors(f, len(sums))
	if len(sums) == 1 {
		f.OpImm("ldr.q", 0, y[0], row)
	}
	for k := range sums {
		if k%2 == 0 && k+1 < len(sums) {
			f.OpPair("ldp.q", 16*k, y[k], y[k+1], row)
		}
		f.Op("fmul.4s", y[k], y[k], x)
		f.Op("fadd.4s", sums[k], sums[k], y[k])
	}
	f.Set(row, "ADD R%r, R%r, R%d", stride, row)
}
