package main

import (
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// set is an instruction set: the number of float32 in a vector, and how many vectors of a row are
// computed at once, so that values of their columns stay in registers.
type set struct {
	name   string
	lanes  int
	wide   int
	masked bool // it has mask registers
	half   bool // matrices have numbers of 16 bits
	vector func(*build.Context) reg.VecVirtual
}

var sets = []set{
	{"AVX512", 16, 4, true, false, (*build.Context).ZMM},
	{"AVX2", 8, 2, false, false, (*build.Context).YMM},
	{"NEON", 8, 2, false, false, (*build.Context).YMM}, // AVX2, translated
}

// halves is AVX512 with instructions on bfloat16 numbers.
var halves = set{"AVX512", 16, 4, true, true, (*build.Context).ZMM}

// function returns the name of a function of the set.
func (s set) function(name string) string {
	if s.half {
		name = "half" + strings.ToUpper(name[:1]) + name[1:]
	}
	return name + s.name
}

// numberBits returns the shift from numbers of a matrix to bytes, and numberSize a number's bytes.
func (s set) numberBits() int {
	if s.half {
		return 1
	}
	return 2
}

func (s set) numberSize() int { return 1 << s.numberBits() }

// Predicates of a comparison: "not less or equal" is true for a NaN, the others are false.
const (
	greater   = operand.U8(0x1e)
	notLE     = operand.U8(0x16)
	equal     = operand.U8(0x00)
	ordered   = operand.U8(0x07)
	floatSize = 4
	lineSize  = 64
)

// maskTable is the name of the masks of AVX2: a vector of ones followed by one of zeros.
const maskTable = "normLanesAVX2"

// code writes instructions for a set. Its mask is that of the last columns of a row.
type code struct {
	asm *build.Context // not embedded: wrapping each of its thousands of methods takes long to compile
	set
	mask reg.Register
}

func (k *code) pointer(name string) reg.GPVirtual { return asmgen.Pointer(k.asm, name) }

// bytes loads a parameter that counts numbers, in bytes.
func (k *code) bytes(name string) reg.GPVirtual {
	r := k.pointer(name)
	k.asm.SHLQ(operand.U8(2), r)
	return r
}

// matrixBytes is bytes for numbers of matrices.
func (k *code) matrixBytes(name string) reg.GPVirtual {
	r := k.pointer(name)
	k.asm.SHLQ(operand.U8(k.numberBits()), r)
	return r
}

// address returns the operand of a parameter.
func (k *code) address(name string) operand.Mem { return asmgen.Address(k.asm, name) }

func (k *code) new() reg.VecVirtual { return k.vector(k.asm) }

// zero returns a vector of zeros.
func (k *code) zero() reg.VecVirtual {
	v := k.new()
	if k.masked {
		k.asm.VPXORD(v, v, v)
	} else {
		k.asm.VXORPS(v, v, v)
	}
	return v
}

// lastMask makes the mask of the first n columns, n from 1 to lanes: a mask register, or a vector
// whose signs select.
func (k *code) lastMask(n reg.GPVirtual) {
	if k.masked {
		k.asm.MOVQ(n, reg.RCX)
		bits := k.asm.GP32()
		k.asm.MOVL(operand.U32(1), bits)
		k.asm.SHLL(reg.CL, bits)
		k.asm.DECL(bits)
		m := k.asm.K()
		k.asm.KMOVW(bits, m)
		k.mask = m
		return
	}
	// Eight words of the mask table, beginning so that n ones are left.
	at, back, m := k.asm.GP64(), k.asm.GP64(), k.asm.YMM()
	k.asm.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(maskTable), k.lanes*floatSize), at)
	k.asm.MOVQ(n, back)
	k.asm.NEGQ(back)
	k.asm.VMOVUPS(operand.Mem{Base: at, Index: back, Scale: 4}, m)
	k.mask = m
}

// load reads a vector, or the columns of the mask with zeros in the others.
func (k *code) load(from operand.Mem, masked bool) reg.VecVirtual {
	v := k.new()
	switch {
	case !masked:
		k.asm.VMOVUPS(from, v)
	case k.masked:
		k.asm.VMOVUPS_Z(from, k.mask, v)
	default:
		k.asm.VMASKMOVPS(from, k.mask, v)
	}
	return v
}

// number reads a vector of a matrix, as load does.
func (k *code) number(from operand.Mem, masked bool) reg.VecVirtual {
	if !k.half {
		return k.load(from, masked)
	}
	v := k.new()
	if masked {
		k.asm.VPMOVZXWD_Z(from, k.mask, v)
	} else {
		k.asm.VPMOVZXWD(from, v)
	}
	k.asm.VPSLLD(operand.U8(16), v, v)
	return v
}

func (k *code) store(v reg.VecVirtual, to operand.Mem, masked bool) {
	switch {
	case !masked:
		k.asm.VMOVUPS(v, to)
	case k.masked:
		k.asm.VMOVUPS(v, k.mask, to)
	default:
		k.asm.VMASKMOVPS(v, k.mask, to)
	}
}

// put stores a vector, by a non-temporal store if wanted and the vector is whole.
func (k *code) put(v reg.VecVirtual, to operand.Mem, masked, stream bool) {
	if k.half {
		k.putHalf(v, to, masked, stream)
		return
	}
	if stream && !masked {
		k.asm.VMOVNTPS(v, to)
		return
	}
	k.store(v, to, masked)
}

// putHalf rounds a vector and stores it as put does. The stand-in for VCVTNE2PS2BF16 puts the second
// of its operands in the lower half, and reads its result.
func (k *code) putHalf(v reg.VecVirtual, to operand.Mem, masked, stream bool) {
	rounded := k.zero()
	k.asm.VPMADD52HUQ(v, v, rounded)
	switch {
	case masked:
		k.asm.VMOVDQU16(rounded.AsY(), k.mask, to)
	case stream:
		k.asm.VMOVNTPS(rounded.AsY(), to)
	default:
		k.asm.VMOVUPS(rounded.AsY(), to)
	}
}

// where returns v in the columns where y compares so with zero, and +0 in the others. y and v may
// be the same.
func (k *code) where(predicate operand.U8, y, zero, v reg.VecVirtual) reg.VecVirtual {
	to := k.new()
	if k.masked {
		m := k.asm.K()
		k.asm.VCMPPS(predicate, zero, y, m)
		k.asm.VMOVAPS_Z(v, m, to)
		return to
	}
	k.asm.VCMPPS(predicate, zero, y, to)
	k.asm.VANDPS(v, to, to)
	return to
}

// part returns the lower or upper numbers of v.
func (k *code) part(v reg.VecVirtual, upper bool) reg.Register {
	switch {
	case !upper && k.masked:
		return v.AsY()
	case !upper:
		return v.AsX()
	case k.masked:
		h := k.asm.YMM()
		k.asm.VEXTRACTF64X4(operand.U8(1), v, h)
		return h
	default:
		h := k.asm.XMM()
		k.asm.VEXTRACTF128(operand.U8(1), v, h)
		return h
	}
}

// widen returns the numbers of v in float64, in two vectors.
func (k *code) widen(v reg.VecVirtual) [2]reg.VecVirtual {
	upper, w := k.part(v, true), [2]reg.VecVirtual{k.new(), k.new()}
	k.asm.VCVTPS2PD(k.part(v, false), w[0])
	k.asm.VCVTPS2PD(upper, w[1])
	return w
}

// loadWide reads a vector of float32 as two of float64.
func (k *code) loadWide(from operand.Mem, masked bool) [2]reg.VecVirtual {
	if masked {
		return k.widen(k.load(from, true))
	}
	w := [2]reg.VecVirtual{k.new(), k.new()}
	for i, v := range w {
		k.asm.VCVTPS2PD(from.Offset(i*k.lanes/2*floatSize), v)
	}
	return w
}

// numberWide is loadWide for a vector of a matrix.
func (k *code) numberWide(from operand.Mem, masked bool) [2]reg.VecVirtual {
	if k.half {
		return k.widen(k.number(from, masked))
	}
	return k.loadWide(from, masked)
}
