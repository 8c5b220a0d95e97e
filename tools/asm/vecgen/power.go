package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// floatExpConstants are the constants of floatExp.
var floatExpConstants = []string{"float log2e", "float log2e low", "float power low", "float power high",
	"float power shift", "float term 0", "float term 2", "float term 4", "float one"}

// wide fills a vector with a constant of 64 bits.
func (e *emitter) wide(name string) reg.VecVirtual {
	v := e.vector()
	e.asm.VBROADCASTSD(constantAddress(name), v)
	return v
}

// floatExp replaces d by e^d in float32, operation by operation as floatExp of package vec does.
func (e *emitter) floatExp(d reg.VecVirtual) {
	// The second operand of the processor's minimum and maximum is the result if one is NaN.
	e.asm.VMAXPS(d, e.inRegister("float power low"), d)
	e.asm.VMINPS(d, e.inRegister("float power high"), d)
	t, n, r, square := e.wide("float power shift"), e.vector(), e.vector(), e.vector()
	e.asm.VFMADD231PS(e.constant("float log2e"), d, t)
	e.asm.VSUBPS(e.constant("float power shift"), t, n)
	e.asm.VMOVAPS(d, r)
	e.asm.VFMSUB213PS(n, e.inRegister("float log2e"), r)
	e.asm.VFMADD231PS(e.constant("float log2e low"), d, r)
	e.asm.VMULPS(r, r, square)
	pair := func(k int) reg.VecVirtual {
		v := e.wide(fmt.Sprint("float term ", k+1))
		e.asm.VFMADD213PS(e.constant(fmt.Sprint("float term ", k)), r, v)
		return v
	}
	q := pair(4)
	e.asm.VFMADD213PS(pair(2), square, q)
	e.asm.VFMADD213PS(pair(0), square, q)
	e.asm.VFMADD213PS(e.constant("float one"), r, q)
	e.asm.VPSLLD(operand.U8(23), t, t)
	e.asm.VMULPS(t, q, d)
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
			for v := range rowSums / e.lanes {
				some := e.group(p, 2*v)
				d := e.load(ls[0].of(x, v*e.lanes), some)
				e.asm.VSUBPS(top, d, d)
				e.floatExp(d)
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
