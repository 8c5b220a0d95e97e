package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// set is an instruction set: the number of float32 in a vector, and the number of float64.
type set struct {
	name     string
	lanes    int
	half     int
	isAVX512 bool
}

// sets are the instruction sets. NEON is AVX2, translated.
var sets = []set{{"AVX512", 16, 8, true}, {"AVX2", 8, 4, false}, {"NEON", 8, 4, false}}

// emitter writes functions for one instruction set.
type emitter struct {
	asm *build.Context // not embedded: wrapping each of its thousands of methods takes long to compile
	set
	constants map[string]reg.VecVirtual // constants in registers of the current function
}

// begin opens the function name, with the suffix of the instruction set.
func (e *emitter) begin(name, signature, doc string) {
	asmgen.Begin(e.asm, name+e.name, doc)
	e.asm.SignatureExpr(signature)
	e.constants = map[string]reg.VecVirtual{}
}

func (e *emitter) end() { asmgen.End(e.asm) }

// argument loads an integer or a pointer.
func (e *emitter) argument(name string) reg.GPVirtual { return asmgen.Pointer(e.asm, name) }

// broadcast fills a vector with the float32 argument name.
func (e *emitter) broadcast(name string) reg.VecVirtual {
	v := e.vector()
	e.asm.VBROADCASTSS(asmgen.Address(e.asm, name), v)
	return v
}

func (e *emitter) vector() reg.VecVirtual {
	if e.isAVX512 {
		return e.asm.ZMM()
	}
	return e.asm.YMM()
}

// vectors returns n new vectors.
func (e *emitter) vectors(n int) vectors {
	vs := make(vectors, n)
	for i := range vs {
		vs[i] = e.vector()
	}
	return vs
}

// zeros returns n vectors of zeros.
func (e *emitter) zeros(n int) vectors {
	vs := make(vectors, n)
	for i := range vs {
		vs[i] = e.zero()
	}
	return vs
}

// repeat writes a loop of n turns, at least one.
func (e *emitter) repeat(label string, n reg.GPVirtual, body func()) {
	e.asm.Label(label)
	body()
	e.asm.DECQ(n)
	e.asm.JNZ(operand.LabelRef(label))
}

// zero returns a vector of zeros.
func (e *emitter) zero() reg.VecVirtual {
	v := e.vector()
	if e.isAVX512 {
		e.asm.VPXORD(v, v, v)
	} else {
		e.asm.VXORPS(v, v, v)
	}
	return v
}

// Data of the generated file: each constant fills a vector of AVX2, and the masks are as many ones
// followed by as many zeros.
const (
	constantsName = "vecConstants"
	masksName     = "vecMasks"
	maskWords     = 32
)

func twice(v float32) uint64 { return uint64(math.Float32bits(v))<<32 | uint64(math.Float32bits(v)) }

// constants have 64 bits: a float64, or a float32 twice.
var constants = []struct {
	name string
	bits uint64
}{
	{"one", math.Float64bits(1)},
	{"bound", math.Float64bits(150)},
	{"-bound", math.Float64bits(-150)},
	{"shift", math.Float64bits(0x1.8p52)},
	{"log2e", math.Float64bits(0x1.71547652b82fep0)},
	{"ln2", math.Float64bits(0x1.62e42fefa39efp-1)},
	{"c2", math.Float64bits(1.0 / 2)},
	{"c3", math.Float64bits(1.0 / 6)},
	{"c4", math.Float64bits(1.0 / 24)},
	{"c5", math.Float64bits(1.0 / 120)},
	{"c6", math.Float64bits(1.0 / 720)},
	{"c7", math.Float64bits(1.0 / 5040)},
	{"bias", 1023 << 52},
	{"sign", 1 << 63},
	{"float one", twice(1)},
	{"float log2e", twice(0x1.715476p0)},
	{"float log2e low", twice(0x1.4ae0cp-26)},
	{"float power low", twice(-88.03)},
	{"float power high", twice(88.7228)},
	{"float power shift", twice(0x1.8p23 + 127)},
	{"float term 0", twice(0.6931472)},
	{"float term 1", twice(0.24022648)},
	{"float term 2", twice(0.055503596)},
	{"float term 3", twice(0.009618499)},
	{"float term 4", twice(0.0013390969)},
	{"float term 5", twice(0.00015329264)},
	{"float abs", twice(math.Float32frombits(1<<31 - 1))},
	{"float shift", twice(0x1p23)},
	{"float -inf", twice(float32(math.Inf(-1)))},
}

func data(c *build.Context) {
	c.StaticGlobal(constantsName)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, k := range constants {
		for copies := range 4 {
			c.AddDatum(32*i+8*copies, operand.U64(k.bits))
		}
	}
	asmgen.Masks(c, masksName, maskWords)
}

func constantAddress(name string) operand.Mem {
	for i, k := range constants {
		if k.name == name {
			return operand.Mem{Symbol: operand.Symbol{Name: constantsName, Static: true}, Base: reg.StaticBase,
				Disp: 32 * i}
		}
	}
	panic("vecgen: no constant " + name)
}

// hold loads constants into registers if there are enough of them: once, before a loop.
func (e *emitter) hold(names ...string) {
	if !e.isAVX512 {
		return
	}
	for _, name := range names {
		v := e.vector()
		e.asm.VBROADCASTSD(constantAddress(name), v)
		e.constants[name] = v
	}
}

// constant returns a constant as an operand that may be in memory.
func (e *emitter) constant(name string) operand.Op {
	if v, ok := e.constants[name]; ok {
		return v
	}
	if e.isAVX512 {
		panic(fmt.Sprintf("vecgen: constant %q is not held", name))
	}
	return constantAddress(name)
}

// inRegister returns a constant in a register.
func (e *emitter) inRegister(name string) reg.VecVirtual {
	if v, ok := e.constants[name]; ok {
		return v
	}
	v := e.vector()
	e.asm.VMOVUPS(e.constant(name), v)
	return v
}

// part selects the elements of a vector that exist. A nil *part selects all.
type part struct {
	mask   reg.OpmaskVirtual // AVX-512
	window reg.GPVirtual     // AVX2: the address of the mask of the first vector
}

// first returns the part of the first n elements, n at most maskWords. It must not be kept across
// loops that need many registers.
func (e *emitter) first(n reg.Register) *part {
	if e.isAVX512 {
		bits, k := e.asm.GP64(), e.asm.K()
		e.asm.MOVQ(operand.I32(-1), bits)
		e.asm.BZHIQ(n, bits, bits)
		e.asm.KMOVW(bits.As32(), k)
		return &part{mask: k}
	}
	w, m := e.asm.GP64(), e.asm.GP64()
	e.asm.LEAQ(operand.Mem{Symbol: operand.Symbol{Name: masksName, Static: true}, Base: reg.StaticBase,
		Disp: 4 * maskWords}, w)
	e.asm.MOVQ(n, m)
	e.asm.SHLQ(operand.U8(2), m)
	e.asm.SUBQ(m, w)
	return &part{window: w}
}

// group returns the part of the g-th half vector, whose elements fill one vector of float64.
func (e *emitter) group(p *part, g int) *part {
	if p == nil || g == 0 {
		return p
	}
	if e.isAVX512 {
		k := e.asm.K()
		e.asm.KSHIFTRW(operand.U8(8*g), p.mask, k)
		return &part{mask: k}
	}
	w := e.asm.GP64()
	e.asm.LEAQ(operand.Mem{Base: p.window, Disp: 16 * g}, w)
	return &part{window: w}
}

// load reads a vector of float32; elements outside of the part are zero.
func (e *emitter) load(m operand.Mem, p *part) reg.VecVirtual {
	v := e.vector()
	switch {
	case p == nil:
		e.asm.VMOVUPS(m, v)
	case e.isAVX512:
		e.asm.VMOVUPS_Z(m, p.mask, v)
	default:
		mask := e.asm.YMM()
		e.asm.VMOVUPS(operand.Mem{Base: p.window}, mask)
		e.asm.VMASKMOVPS(m, mask, v)
	}
	return v
}

// store writes a vector of float32.
func (e *emitter) store(v reg.VecVirtual, m operand.Mem, p *part) {
	switch {
	case p == nil:
		e.asm.VMOVUPS(v, m)
	case e.isAVX512:
		e.asm.VMOVUPS(v, p.mask, m)
	default:
		mask := e.asm.YMM()
		e.asm.VMOVUPS(operand.Mem{Base: p.window}, mask)
		e.asm.VMASKMOVPS(v, mask, m)
	}
}

// widen reads half a vector of float32 as a vector of float64.
func (e *emitter) widen(m operand.Mem, p *part) reg.VecVirtual {
	v := e.vector()
	switch {
	case p == nil:
		e.asm.VCVTPS2PD(m, v)
	case e.isAVX512:
		e.asm.VCVTPS2PD_Z(m, p.mask, v)
	default:
		mask, x := e.asm.XMM(), e.asm.XMM()
		e.asm.VMOVUPS(operand.Mem{Base: p.window}, mask)
		e.asm.VMASKMOVPS(m, mask, x)
		e.asm.VCVTPS2PD(x, v)
	}
	return v
}

// narrow writes a vector of float64 as half a vector of float32.
func (e *emitter) narrow(v reg.VecVirtual, m operand.Mem, p *part) { e.storeHalf(e.narrowed(v), m, p) }

// narrowed returns a vector of float64 as half a vector of float32.
func (e *emitter) narrowed(v reg.VecVirtual) reg.VecVirtual {
	if e.isAVX512 {
		x := e.asm.YMM()
		e.asm.VCVTPD2PS(v, x)
		return x
	}
	x := e.asm.XMM()
	e.asm.VCVTPD2PSY(v, x)
	return x
}

// storeHalf writes half a vector of float32.
func (e *emitter) storeHalf(v reg.VecVirtual, m operand.Mem, p *part) {
	switch {
	case p == nil:
		e.asm.VMOVUPS(v, m)
	case e.isAVX512:
		e.asm.VMOVUPS(v, p.mask, m)
	default:
		mask := e.asm.XMM()
		e.asm.VMOVUPS(operand.Mem{Base: p.window}, mask)
		e.asm.VMASKMOVPS(v, mask, m)
	}
}

// loadHalf reads half a vector of float32; elements outside of the part are zero.
func (e *emitter) loadHalf(m operand.Mem, p *part) reg.VecVirtual {
	if e.isAVX512 {
		v := e.asm.YMM()
		if p == nil {
			e.asm.VMOVUPS(m, v)
		} else {
			e.asm.VMOVUPS_Z(m, p.mask, v)
		}
		return v
	}
	v := e.asm.XMM()
	if p == nil {
		e.asm.VMOVUPS(m, v)
		return v
	}
	mask := e.asm.XMM()
	e.asm.VMOVUPS(operand.Mem{Base: p.window}, mask)
	e.asm.VMASKMOVPS(m, mask, v)
	return v
}

// onlyWide sets the elements of a vector of float64 outside of the part to zero.
func (e *emitter) onlyWide(v reg.VecVirtual, p *part) reg.VecVirtual {
	if p == nil {
		return v
	}
	w := e.vector()
	if e.isAVX512 {
		e.asm.VMOVAPD_Z(v, p.mask, w)
		return w
	}
	e.asm.VPMOVSXDQ(operand.Mem{Base: p.window}, w)
	e.asm.VANDPD(v, w, w)
	return w
}

// loop is a position of a pass over numbers; at is the index of the first of them.
type loop struct {
	*emitter
	at   reg.GPVirtual
	disp int // elements after at
}

// of returns the operand at the position of the loop in the vector that begins at base.
func (l loop) of(base reg.Register, plus int) operand.Mem {
	return operand.Mem{Base: base, Index: l.at, Scale: 4, Disp: 4 * (l.disp + plus)}
}

// pass calls body for numbers at, at+1, ... before at+n, step at a time: first unroll steps at
// once, then one, then the rest as a part. It changes at and n.
func (e *emitter) pass(label string, at, n reg.GPVirtual, step, unroll int, body func(ls []loop, p *part)) {
	name := func(s string) string { return label + "_" + s }
	if unroll > 1 {
		e.asm.SUBQ(operand.U32(step*unroll), n)
		e.asm.JLT(operand.LabelRef(name("few")))
		e.asm.Label(name("many"))
		var ls []loop
		for u := range unroll {
			ls = append(ls, loop{e, at, u * step})
		}
		body(ls, nil)
		e.asm.ADDQ(operand.U32(step*unroll), at)
		e.asm.SUBQ(operand.U32(step*unroll), n)
		e.asm.JGE(operand.LabelRef(name("many")))
		e.asm.Label(name("few"))
		e.asm.ADDQ(operand.U32(step*unroll), n)
	}
	e.asm.SUBQ(operand.U32(step), n)
	e.asm.JLT(operand.LabelRef(name("rest")))
	e.asm.Label(name("one"))
	body([]loop{{e, at, 0}}, nil)
	e.asm.ADDQ(operand.U32(step), at)
	e.asm.SUBQ(operand.U32(step), n)
	e.asm.JGE(operand.LabelRef(name("one")))
	e.asm.Label(name("rest"))
	e.asm.ADDQ(operand.U32(step), n)
	e.asm.JZ(operand.LabelRef(name("done")))
	body([]loop{{e, at, 0}}, e.first(n))
	e.asm.Label(name("done"))
}

// each returns a body that computes one step after the other.
func each(body func(l loop, p *part)) func([]loop, *part) {
	return func(ls []loop, p *part) {
		for _, l := range ls {
			body(l, p)
		}
	}
}

// start returns a register with zero, as a counter.
func (e *emitter) start() reg.GPVirtual {
	r := e.asm.GP64()
	e.asm.XORQ(r, r)
	return r
}
