package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// floatExpConstants are the constants of floatExp.
var floatExpConstants = []string{"float log2e", "float log2e low", "float power low", "float power high",
	"float power shift", "float term 0", "float term 2", "float term 4", "float one"}

// floatExp replaces each d by e^d in float32, operation by operation as floatExp of package vec
// does. The vectors are interleaved.
func (e *emitter) floatExp(ds vectors) {
	count := len(ds)
	t, n, r, q := e.vectors(count), e.vectors(count), e.vectors(count), e.vectors(count)
	turn := func(op func(i int)) {
		for i := range ds {
			op(i)
		}
	}
	// The second operand of the processor's minimum and maximum is the result if one is NaN.
	bound := e.inRegister("float power low")
	turn(func(i int) { e.asm.VMAXPS(ds[i], bound, ds[i]) })
	bound = e.inRegister("float power high")
	turn(func(i int) { e.asm.VMINPS(ds[i], bound, ds[i]) })
	turn(func(i int) { e.asm.VMOVUPS(e.constant("float power shift"), t[i]) })
	turn(func(i int) { e.asm.VFMADD231PS(e.constant("float log2e"), ds[i], t[i]) })
	turn(func(i int) { e.asm.VSUBPS(e.constant("float power shift"), t[i], n[i]) })
	turn(func(i int) { e.asm.VMOVAPS(ds[i], r[i]) })
	log2e := e.inRegister("float log2e")
	turn(func(i int) { e.asm.VFMSUB213PS(n[i], log2e, r[i]) })
	turn(func(i int) { e.asm.VFMADD231PS(e.constant("float log2e low"), ds[i], r[i]) })
	square := n
	turn(func(i int) { e.asm.VMULPS(r[i], r[i], square[i]) })
	pair := func(k int, v vectors) vectors {
		turn(func(i int) { e.asm.VBROADCASTSD(constantAddress(fmt.Sprint("float term ", k+1)), v[i]) })
		turn(func(i int) { e.asm.VFMADD213PS(e.constant(fmt.Sprint("float term ", k)), r[i], v[i]) })
		return v
	}
	pair(4, q)
	p := pair(2, ds)
	turn(func(i int) { e.asm.VFMADD213PS(p[i], square[i], q[i]) })
	pair(0, ds)
	turn(func(i int) { e.asm.VFMADD213PS(p[i], square[i], q[i]) })
	turn(func(i int) { e.asm.VFMADD213PS(e.constant("float one"), r[i], q[i]) })
	turn(func(i int) { e.asm.VPSLLD(operand.U8(23), t[i], t[i]) })
	turn(func(i int) { e.asm.VMULPS(t[i], q[i], ds[i]) })
}

// floatExpRows writes the exponentials of attention.
func floatExpRows(e *emitter) {
	e.begin("floatExpRows", "func(dst *float32, sums *float64, x, tops *float32, n, rows int)",
		"writes dst = exp(x - top), computed in float32, for rows of n numbers, top that of the row, and the sum of "+
			"each row to sums: number j is added to partial sum j mod 16 in float32, and in float64 sum l takes sum "+
			"l+8, l+4, l+2 and l+1 in turn. Both counts are at least 1.")
	dst, sums, x, tops := e.argument("dst"), e.argument("sums"), e.argument("x"), e.argument("tops")
	n, rows := e.argument("n"), e.argument("rows")
	e.hold(floatExpConstants...)
	e.repeat("row", rows, func() {
		top, at, left := e.vector(), e.start(), e.asm.GP64()
		e.asm.VBROADCASTSS(operand.Mem{Base: tops}, top)
		acc := e.zeros(rowSums / e.lanes)
		e.asm.MOVQ(n, left)
		e.pass("row", at, left, rowSums, 1, func(ls []loop, p *part) {
			var ds vectors
			for v := range rowSums / e.lanes {
				d := e.load(ls[0].of(x, v*e.lanes), e.group(p, 2*v))
				e.asm.VSUBPS(top, d, d)
				ds = append(ds, d)
			}
			e.floatExp(ds)
			for v, d := range ds {
				some := e.group(p, 2*v)
				e.store(d, ls[0].of(dst, v*e.lanes), some)
				e.asm.VADDPS(e.only(d, some), acc[v], acc[v])
			}
		})
		e.asm.LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x)
		e.asm.LEAQ(operand.Mem{Base: dst, Index: n, Scale: 4}, dst)
		e.asm.VMOVSD(e.tree(e.wideHalves(acc)), operand.Mem{Base: sums})
		e.asm.ADDQ(operand.U8(8), sums)
		e.asm.ADDQ(operand.U8(4), tops)
	})
	e.end()
}

// scaleRows writes the last step of attention's softmax.
func scaleRows(e *emitter) {
	e.begin("scaleRows", "func(dst, x, scales *float32, n, rows, stride int)",
		"writes rows of n numbers of x times scales to rows of dst that lie stride numbers apart. Both counts are at "+
			"least 1.")
	dst, x, scales := e.argument("dst"), e.argument("x"), e.argument("scales")
	n, rows, stride := e.argument("n"), e.argument("rows"), e.argument("stride")
	e.repeat("row", rows, func() {
		s, at, left := e.vector(), e.start(), e.asm.GP64()
		e.asm.VBROADCASTSS(operand.Mem{Base: scales}, s)
		e.asm.MOVQ(n, left)
		e.pass("row", at, left, e.lanes, 2, each(func(l loop, p *part) {
			v := e.load(l.of(x, 0), p)
			e.asm.VMULPS(s, v, v)
			e.store(v, l.of(dst, 0), p)
		}))
		e.asm.LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x)
		e.asm.LEAQ(operand.Mem{Base: dst, Index: stride, Scale: 4}, dst)
		e.asm.ADDQ(operand.U8(4), scales)
	})
	e.end()
}

// only sets the elements of a vector of float32 outside of the part to zero.
func (e *emitter) only(v reg.VecVirtual, p *part) reg.VecVirtual {
	if p == nil {
		return v
	}
	w := e.vector()
	if e.isAVX512 {
		e.asm.VMOVAPS_Z(v, p.mask, w)
	} else {
		e.asm.VANDPS(operand.Mem{Base: p.window}, v, w)
	}
	return w
}

// wideHalves returns the halves of vectors of float32 as vectors of float64.
func (e *emitter) wideHalves(vs vectors) (wide vectors) {
	for _, v := range vs {
		low, high := e.vector(), e.vector()
		if e.isAVX512 {
			half := e.asm.YMM()
			e.asm.VEXTRACTF32X8(operand.U8(1), v, half)
			e.asm.VCVTPS2PD(v.AsY(), low)
			e.asm.VCVTPS2PD(half, high)
		} else {
			half := e.asm.XMM()
			e.asm.VEXTRACTF128(operand.U8(1), v, half)
			e.asm.VCVTPS2PD(v.AsX(), low)
			e.asm.VCVTPS2PD(half, high)
		}
		wide = append(wide, low, high)
	}
	return wide
}
