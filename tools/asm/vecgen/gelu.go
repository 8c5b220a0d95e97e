package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// powerConstants are those of powers and reciprocals that are held in registers.
var powerConstants = []string{"power bound", "-power bound", "shift", "power 0", "power 2", "power 4", "power 6", "one"}

// powers replaces each x by 2^x in float64, operation by operation as powers of package vec does.
func (e *emitter) powers(xs vectors) {
	n := len(xs)
	t, r, r2 := e.vectors(n), e.vectors(n), e.vectors(n)
	p01, p23, p45 := make(vectors, n), make(vectors, n), make(vectors, n)
	turn := func(op func(i int)) {
		for i := range xs {
			op(i)
		}
	}
	// The second operand of the processor's minimum and maximum is the result if one is NaN.
	bound := e.inRegister("power bound")
	turn(func(i int) { e.asm.VMINPD(xs[i], bound, xs[i]) })
	bound = e.inRegister("-power bound")
	turn(func(i int) { e.asm.VMAXPD(xs[i], bound, xs[i]) })
	turn(func(i int) { e.asm.VADDPD(e.constant("shift"), xs[i], t[i]) })
	turn(func(i int) { e.asm.VSUBPD(e.constant("shift"), t[i], r[i]) })
	turn(func(i int) { e.asm.VSUBPD(r[i], xs[i], r[i]) })
	turn(func(i int) { p01[i] = e.wide("power 1") })
	turn(func(i int) { e.asm.VFMADD213PD(e.constant("power 0"), r[i], p01[i]) })
	turn(func(i int) { p23[i] = e.wide("power 3") })
	turn(func(i int) { e.asm.VFMADD213PD(e.constant("power 2"), r[i], p23[i]) })
	turn(func(i int) { p45[i] = e.wide("power 5") })
	turn(func(i int) { e.asm.VFMADD213PD(e.constant("power 4"), r[i], p45[i]) })
	turn(func(i int) { e.asm.VMULPD(r[i], r[i], r2[i]) })
	turn(func(i int) { e.asm.VFMADD231PD(e.constant("power 6"), r2[i], p45[i]) })
	turn(func(i int) { e.asm.VFMADD213PD(p23[i], r2[i], p45[i]) })
	turn(func(i int) { e.asm.VFMADD213PD(p01[i], r2[i], p45[i]) })
	turn(func(i int) { e.asm.VPSLLQ(operand.U8(52), t[i], t[i]) })
	turn(func(i int) { e.asm.VPADDQ(t[i], p45[i], xs[i]) })
}

// reciprocals returns 1/d of each d, as reciprocal of package vec does.
func (e *emitter) reciprocals(ds vectors) vectors {
	short, one := make([]reg.VecVirtual, len(ds)), e.halfVector()
	e.asm.VMOVUPS(constantAddress("float one"), one)
	for i, d := range ds {
		short[i] = e.halfVector()
		e.narrowTo(d, short[i])
	}
	for i := range ds {
		e.asm.VDIVPS(short[i], one, short[i])
	}
	s, rest := e.vectors(len(ds)), make(vectors, len(ds))
	for i := range ds {
		e.asm.VCVTPS2PD(short[i], s[i])
	}
	for i := range ds {
		rest[i] = e.wide("one")
		e.asm.VFNMADD231PD(ds[i], s[i], rest[i])
	}
	for i := range ds {
		e.asm.VFMADD213PD(s[i], s[i], rest[i])
	}
	return rest
}

// halfVector returns a register for half a vector of float32.
func (e *emitter) halfVector() reg.VecVirtual {
	if e.isAVX512 {
		return e.asm.YMM()
	}
	return e.asm.XMM()
}

// narrowTo rounds a vector of float64 to half a vector of float32.
func (e *emitter) narrowTo(v, to reg.Register) {
	if e.isAVX512 {
		e.asm.VCVTPD2PS(v, to)
		return
	}
	e.asm.VCVTPD2PSY(v, to)
}

// expBlock is how many exponentials are on the stack at a time.
const expBlock = 64

// exponentials is where those of a block are.
type exponentials struct{ base reg.GPVirtual }

// at returns the operand at the position of a loop.
func (x exponentials) at(l loop) operand.Mem {
	return operand.Mem{Base: x.base, Index: l.at, Scale: 8, Disp: 8 * l.disp}
}

// expBlocks passes over n numbers at the bases, which it moves, block by block: exps returns the
// exponentials at the positions of the loops, and then computes what follows from them. In one pass
// each number would wait for so many operations that the queues of a processor hold few numbers.
func (e *emitter) expBlocks(n reg.GPVirtual, bases []reg.GPVirtual, exps func(ls []loop, p *part) vectors,
	then func(ls []loop, p *part, from exponentials)) {
	const line = 64
	from := exponentials{e.asm.GP64()}
	e.asm.LEAQ(e.asm.AllocLocal(8*expBlock+line), from.base)
	e.asm.ADDQ(operand.U8(line-1), from.base)
	e.asm.ANDQ(operand.I8(-line), from.base)
	e.asm.Label("block")
	count, left := e.asm.GP64(), e.asm.GP64()
	e.asm.MOVQ(operand.U32(expBlock), count)
	e.asm.CMPQ(n, count)
	e.asm.CMOVQLT(n, count)
	e.asm.MOVQ(count, left)
	e.pass("exps", e.start(), left, e.half, e.turns(), func(ls []loop, p *part) {
		for i, v := range exps(ls, p) {
			e.asm.VMOVUPD(v, from.at(ls[i]))
		}
	})
	left = e.asm.GP64()
	e.asm.MOVQ(count, left)
	e.pass("pass", e.start(), left, e.half, e.turns(), func(ls []loop, p *part) { then(ls, p, from) })
	for _, base := range bases {
		e.asm.LEAQ(operand.Mem{Base: base, Index: count, Scale: 4}, base)
	}
	e.asm.SUBQ(count, n)
	e.asm.JNZ(operand.LabelRef("block"))
}

// geluTanhs writes GELU in its tanh form, operation by operation as geluTanhsGo of package vec does.
func geluTanhs(e *emitter) {
	e.begin("geluTanhs", "func(dst, x *float32, n int)", "writes dst = x/(1+exp(-a)), a = 2·sqrt(2/π)·(x + "+
		"0.044715·x³), computed in float64.")
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(append([]string{"gelu first"}, powerConstants...)...)
	exps := func(ls []loop, p *part) vectors { return e.geluExps(ls, p, x) }
	e.expBlocks(e.argument("n"), []reg.GPVirtual{dst, x}, exps, func(ls []loop, p *part, from exponentials) {
		for i, s := range e.reciprocals(e.onePlus(ls, from)) {
			e.asm.VMULPD(e.widen(ls[i].of(x, 0), p), s, s)
			e.narrow(s, ls[i].of(dst, 0), p)
		}
	})
	e.end()
}

// onePlus returns one plus the exponentials at the positions of the loops.
func (e *emitter) onePlus(ls []loop, from exponentials) vectors {
	vs := make(vectors, len(ls))
	for i, l := range ls {
		vs[i] = e.wide("one")
		e.asm.VADDPD(from.at(l), vs[i], vs[i])
	}
	return vs
}

// geluTanhGrads writes the gradient of GELU, as geluTanhGradsGo of package vec does.
func geluTanhGrads(e *emitter) {
	e.begin("geluTanhGrads", "func(dst, x, dy *float32, n int)", "writes dy times the derivative of GELU at x, as "+
		"geluTanhs has it, computed in float64.")
	dst, x, dy := e.argument("dst"), e.argument("x"), e.argument("dy")
	e.hold(append([]string{"gelu first", "gelu slope"}, powerConstants...)...)
	exps := func(ls []loop, p *part) vectors { return e.geluExps(ls, p, x) }
	e.expBlocks(e.argument("n"), []reg.GPVirtual{dst, x, dy}, exps, func(ls []loop, p *part, from exponentials) {
		slopes := make(vectors, len(ls))
		for i, s := range e.reciprocals(e.onePlus(ls, from)) {
			l, v, d := ls[i], e.vector(), e.vector()
			f, slope := e.widen(l.of(x, 0), p), e.wide("gelu slope 3")
			e.asm.VMULPD(from.at(l), s, v)
			e.asm.VMULPD(f, f, d)
			e.asm.VFMADD213PD(e.constant("gelu slope"), d, slope)
			e.asm.VMULPD(slope, f, f)
			e.asm.VFMADD213PD(e.constant("one"), f, v)
			e.asm.VMULPD(v, s, s)
			slopes[i] = s
		}
		for i, s := range slopes {
			e.asm.VMULPD(e.widen(ls[i].of(dy, 0), p), s, s)
			e.narrow(s, ls[i].of(dst, 0), p)
		}
	})
	e.end()
}

// geluExps returns exp(-a) of the numbers at the positions of the loops.
func (e *emitter) geluExps(ls []loop, p *part, x reg.Register) vectors {
	vs := make(vectors, len(ls))
	for i, l := range ls {
		vs[i] = e.widen(l.of(x, 0), p)
		square, sum := e.vector(), e.wide("gelu third")
		e.asm.VMULPD(vs[i], vs[i], square)
		e.asm.VFMADD213PD(e.constant("gelu first"), square, sum)
		e.asm.VMULPD(sum, vs[i], vs[i])
	}
	e.powers(vs)
	return vs
}

// erfDegree is the degree of the polynomial of halfErfcs of package vec.
const erfDegree = 12

// wide fills a vector with a constant.
func (e *emitter) wide(name string) reg.VecVirtual {
	v := e.vector()
	e.asm.VBROADCASTSD(constantAddress(name), v)
	return v
}

// and writes the bits that two vectors of float64 share to the second one.
func (e *emitter) and(a, b reg.VecVirtual) {
	if e.isAVX512 {
		e.asm.VPANDQ(a, b, b)
		return
	}
	e.asm.VANDPD(a, b, b)
}

// squareExps returns exp(-x²/2) of the numbers at the positions of the loops.
func (e *emitter) squareExps(ls []loop, p *part, x reg.Register) vectors {
	vs := make(vectors, len(ls))
	for i, l := range ls {
		vs[i] = e.widen(l.of(x, 0), p)
		e.asm.VMULPD(vs[i], vs[i], vs[i])
		e.asm.VMULPD(e.wide("erf square"), vs[i], vs[i])
	}
	e.powers(vs)
	return vs
}

// halfErfcs returns half of erfc(|x|/√2) and |x|, at most the bound of powers, of the numbers at the
// positions of the loops, as halfErfcs of package vec has them.
func (e *emitter) halfErfcs(ls []loop, p *part, x reg.Register, from exponentials) (half, size vectors) {
	size, half = make(vectors, len(ls)), make(vectors, len(ls))
	ds, zs := make(vectors, len(ls)), make(vectors, len(ls))
	for i, l := range ls {
		size[i] = e.widen(l.of(x, 0), p)
		e.and(e.wide("abs"), size[i])
		e.asm.VMINPD(size[i], e.inRegister("power bound"), size[i])
		ds[i] = e.wide("erf step")
		e.asm.VFMADD213PD(e.constant("one"), size[i], ds[i])
	}
	us := e.reciprocals(ds)
	for i := range ls {
		zs[i], half[i] = e.wide("erf scale"), e.wide(fmt.Sprint("erf ", erfDegree))
		e.asm.VFMADD213PD(e.wide("erf shift"), us[i], zs[i])
	}
	for k := erfDegree - 1; k >= 0; k-- {
		term := e.wide(fmt.Sprint("erf ", k))
		for i := range ls {
			e.asm.VFMADD213PD(term, zs[i], half[i])
		}
	}
	for i, l := range ls {
		e.asm.VMULPD(us[i], half[i], half[i])
		e.asm.VMULPD(from.at(l), half[i], half[i])
	}
	return half, size
}

// geluErfs writes GELU in its exact form, as geluErfsGo of package vec does.
func geluErfs(e *emitter) {
	e.begin("geluErfs", "func(dst, x *float32, n int)",
		"writes dst = max(x, 0) - |x|·erfc(|x|/√2)/2, computed in float64.")
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(powerConstants...)
	exps := func(ls []loop, p *part) vectors { return e.squareExps(ls, p, x) }
	e.expBlocks(e.argument("n"), []reg.GPVirtual{dst, x}, exps,
		func(ls []loop, p *part, from exponentials) {
			half, size := e.halfErfcs(ls, p, x, from)
			for i, l := range ls {
				positive := e.widen(l.of(x, 0), p)
				e.asm.VMAXPD(positive, e.zero(), positive) // the second operand if one is NaN
				e.asm.VFNMADD231PD(half[i], size[i], positive)
				e.narrow(positive, l.of(dst, 0), p)
			}
		})
	e.end()
}

// geluErfGrads writes its gradient, as geluErfGradsGo of package vec does.
func geluErfGrads(e *emitter) {
	e.begin("geluErfGrads", "func(dst, x, dy *float32, n int)",
		"writes dy times the derivative of GELU at x, as geluErfs has it, computed in float64.")
	dst, x, dy := e.argument("dst"), e.argument("x"), e.argument("dy")
	e.hold(powerConstants...)
	exps := func(ls []loop, p *part) vectors { return e.squareExps(ls, p, x) }
	e.expBlocks(e.argument("n"), []reg.GPVirtual{dst, x, dy}, exps,
		func(ls []loop, p *part, from exponentials) {
			halves, _ := e.halfErfcs(ls, p, x, from)
			for i, l := range ls {
				half, v := halves[i], e.widen(l.of(x, 0), p)
				e.erfSide(v, half)
				e.asm.VMULPD(from.at(l), v, v)
				e.asm.VFMADD231PD(e.wide("density"), v, half)
				e.asm.VMULPD(e.widen(l.of(dy, 0), p), half, half)
				e.narrow(half, l.of(dst, 0), p)
			}
		})
	e.end()
}

// erfSide replaces half by 1 - half where v is above zero.
func (e *emitter) erfSide(v, half reg.VecVirtual) {
	other := e.vector()
	e.asm.VSUBPD(half, e.inRegister("one"), other)
	if e.isAVX512 {
		k := e.asm.K()
		e.asm.VCMPPD(operand.U8(greater), e.zero(), v, k)
		e.asm.VMOVAPD(other, k, half)
		return
	}
	mask := e.vector()
	e.asm.VCMPPD(operand.U8(greater), e.zero(), v, mask)
	e.asm.VBLENDVPD(mask, other, half, half)
}
