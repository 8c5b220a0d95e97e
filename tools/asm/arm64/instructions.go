package arm64

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// threeOperands are the instructions that are the same for each half: the result is op(n, m), where
// m is the first operand in Go's order.
var threeOperands = map[string]string{
	"VADDPS": "fadd.4s", "VSUBPS": "fsub.4s", "VMULPS": "fmul.4s", "VDIVPS": "fdiv.4s",
	"VADDPD": "fadd.2d", "VSUBPD": "fsub.2d", "VMULPD": "fmul.2d", "VDIVPD": "fdiv.2d",
	"VADDSS": "fadd.4s", "VSUBSS": "fsub.4s", "VMULSS": "fmul.4s",
	"VANDPS": "and.16b", "VANDPD": "and.16b", "VORPS": "orr.16b", "VXORPD": "eor.16b", "VXORPS": "eor.16b",
	"VPADDQ":    "add.2d",
	"VUNPCKLPS": "zip1.4s", "VUNPCKHPS": "zip2.4s", "VUNPCKLPD": "zip1.2d", "VUNPCKHPD": "zip2.2d",
	"VPUNPCKLBW": "zip1.16b", "VPUNPCKHBW": "zip2.16b",
}

// conditions are the names of conditions after a comparison, an addition or a subtraction.
var conditions = map[string]string{
	"E": "EQ", "EQ": "EQ", "Z": "EQ", "NE": "NE", "NZ": "NE", "LT": "LT", "LE": "LE", "GT": "GT", "G": "GT",
	"GE": "GE", "S": "MI", "NS": "PL", "CS": "LO",
}

// instruction translates one instruction. flags says that its condition flags are read.
func (t *translator) instruction(n *ir.Instruction, flags bool) {
	o := n.Operands
	if op, ok := threeOperands[n.Opcode]; ok {
		t.perHalf(op, o)
		return
	}
	if strings.HasPrefix(n.Opcode, "V") || n.Opcode == "MOVSD" || n.Opcode == "MOVSS" {
		t.vectorInstruction(n)
		return
	}
	if n.IsBranch {
		condition := ""
		if n.IsConditional {
			c, ok := conditions[n.Opcode[1:]]
			if !ok {
				t.fail("no translation of %s", n.Opcode)
			}
			condition = c
		}
		t.Jump(condition, string(o[0].(operand.LabelRef)))
		return
	}
	t.generalInstruction(n, flags)
}

// perHalf translates an instruction with three operands.
func (t *translator) perHalf(op string, o []operand.Op) {
	d := t.pair(o[2])
	if (op == "eor.16b") && o[0] == o[1] {
		t.clear(d[0])
		if d[1] != d[0] {
			t.clear(d[1])
		}
		return
	}
	half := halves(o[2]) == 1
	m, n := t.source(o[0], half), t.source(o[1], half)
	for h := range halves(o[2]) {
		t.Op(op, d[h], n[h], m[h])
	}
	t.rest(o[2])
}

// perHalfOne translates an instruction with one source.
func (t *translator) perHalfOne(op string, imm int, from, to operand.Op) {
	s, d := t.source(from, halves(to) == 1), t.pair(to)
	for h := range halves(to) {
		t.OpImm(op, imm, d[h], s[h])
	}
	t.rest(to)
}

// vectorInstruction translates the others that work on vectors.
func (t *translator) vectorInstruction(n *ir.Instruction) {
	if n.Opcode != "VZEROUPPER" && !t.transfer(n.Opcode, n.Operands) && !t.rearrange(n.Opcode, n.Operands) &&
		!t.compute(n.Opcode, n.Operands) {
		t.fail("no translation of %s", n.Opcode)
	}
}

// transfer translates loads, stores and copies, and reports whether the instruction is one.
func (t *translator) transfer(opcode string, o []operand.Op) bool {
	switch opcode {
	case "VMOVUPS", "VMOVUPD", "VMOVAPS", "VMOVNTPS":
		t.moveVector(opcode == "VMOVNTPS", o[0], o[1])
	case "VMOVSS", "VMOVSD", "MOVSD", "MOVSS":
		t.moveScalar(strings.TrimPrefix(opcode, "V") == "MOVSD", o[0], o[1])
	case "VBROADCASTSS", "VBROADCASTSD":
		t.broadcast(opcode == "VBROADCASTSD", o[0].(operand.Mem), o[1])
	case "VBROADCASTI128":
		d, m := t.pair(o[1]), t.source(o[0], true)
		t.Move(d[0], m[0])
		t.Move(d[1], m[0])
	case "VINSERTI128":
		d, s, m := t.pair(o[3]), t.pair(o[2]), t.source(o[1], true)
		t.Move(d[0], s[0])
		t.Move(d[1], m[0])
	case "VMASKMOVPS":
		t.moveMasked(o[0], o[1], o[2])
	case "VGATHERDPS":
		t.gather(o[0], o[1].(operand.Mem), o[2])
	default:
		return false
	}
	return true
}

// rearrange translates those that move numbers within registers.
func (t *translator) rearrange(opcode string, o []operand.Op) bool {
	last := o[len(o)-1]
	switch opcode {
	case "VEXTRACTF128", "VEXTRACTI128":
		t.Move(t.pair(last)[0], t.pair(o[1])[int(o[0].(operand.U8))])
		t.rest(last)
	case "VPERM2F128":
		t.permuteHalves(int(o[0].(operand.U8)), o[1], o[2], o[3])
	case "VPERMILPD":
		d, s := t.pair(o[2]), t.pair(o[1]) // the two halves of 16 bytes in turn
		t.OpImm("ext.16b", 8, d[0], s[0], s[0])
		t.rest(last)
	case "VPERMILPS":
		t.OpImm("dup.s", int(o[0].(operand.U8))&3, t.pair(o[2])[0], t.pair(o[1])[0]) // only the first number is used
		t.rest(last)
	case "VPERMPS":
		t.permute(t.pair(o[0]), t.pair(o[1]), t.pair(o[2]))
	case "VPSRLDQ":
		d, s, zero := t.pair(o[2]), t.pair(o[1]), t.Vector()
		t.clear(zero)
		t.OpImm("ext.16b", int(o[0].(operand.U8)), d[0], s[0], zero)
		t.rest(last)
	default:
		return false
	}
	return true
}

// compute translates conversions, comparisons and arithmetic.
func (t *translator) compute(opcode string, o []operand.Op) bool {
	last := o[len(o)-1]
	switch opcode {
	case "VCVTPS2PD":
		s, d, low := t.source(o[0], true), t.pair(o[1]), t.Vector()
		t.Op("fcvtl", low, s[0])
		t.Op("fcvtl2", d[1], s[0])
		t.Move(d[0], low)
	case "VCVTPD2PSY":
		s, d, x := t.source(o[0], false), t.pair(o[1]), t.Vector()
		t.Op("fcvtn", x, s[0])
		t.Op("fcvtn2", x, s[1])
		t.Move(d[0], x)
		t.rest(last)
	case "VCVTDQ2PS":
		t.perHalfOne("scvtf.4s", 0, o[0], o[1])
	case "VSQRTPS":
		t.perHalfOne("fsqrt.4s", 0, o[0], o[1])
	case "VPSLLQ":
		t.perHalfOne("shl.2d", int(o[0].(operand.U8)), o[1], o[2])
	case "VPSLLD":
		t.perHalfOne("shl.4s", int(o[0].(operand.U8)), o[1], o[2])
	case "VPMOVZXBD":
		t.widenBytes(o[0], o[1])
	case "VPMOVSXDQ":
		s, d := t.source(o[0], true), t.pair(o[1])
		t.Op("sxtl.2d", d[0], s[0])
		t.Op("sxtl2.2d", d[1], s[0])
	case "VPCMPEQD":
		d := t.pair(o[2])
		t.OpImm("movi.16b", 255, d[0])
		if d[1] != d[0] {
			t.OpImm("movi.16b", 255, d[1])
		}
	case "VMINPS", "VMAXPS", "VMINPD", "VMAXPD":
		t.extreme(opcode, o)
	case "VFMADD231PS", "VFMADD231PD", "VFNMADD231PS", "VFMADD213PS", "VFMSUB213PS":
		t.multiplyAdd(opcode, o)
	case "VCMPPS":
		t.compare(int(o[0].(operand.U8)), o[1], o[2], o[3])
	case "VBLENDVPS":
		t.blend(o)
	default:
		return false
	}
	return true
}

// blend translates the choice of numbers by a mask.
func (t *translator) blend(o []operand.Op) {
	d, a, b, mask := t.pair(o[3]), t.pair(o[2]), t.source(o[1], halves(o[3]) == 1), t.pair(o[0])
	for h := range halves(o[3]) {
		x := t.Vector()
		t.Move(x, mask[h])
		t.Op("bsl.16b", x, b[h], a[h])
		t.Move(d[h], x)
	}
	t.rest(o[3])
}

// moveVector translates loads, stores and copies of whole registers.
func (t *translator) moveVector(stream bool, from, to operand.Op) {
	if m, ok := to.(operand.Mem); ok {
		base, off := t.address(m)
		v := t.pair(from)
		switch {
		case halves(from) == 1:
			t.store("q", v[0], base, off)
		case stream:
			t.move2("stnp", v, base, off)
		default:
			t.move2("stp", v, base, off)
		}
		return
	}
	d := t.pair(to)
	if m, ok := from.(operand.Mem); ok && !isConstant(from) {
		base, off := t.address(m)
		if halves(to) == 1 {
			t.load("q", d[0], base, off)
		} else {
			t.move2("ldp", d, base, off)
		}
	} else if m, ok := from.(operand.Mem); ok && d[0] == d[1] {
		base, off := t.address(m)
		t.load("q", d[0], base, off)
	} else {
		s := t.source(from, halves(to) == 1)
		for h := range halves(to) {
			t.Move(d[h], s[h])
		}
	}
	t.rest(to)
}

// moveScalar translates loads and stores of one number.
func (t *translator) moveScalar(double bool, from, to operand.Op) {
	size, move := "s", "FMOVS"
	if double {
		size, move = "d", "FMOVD"
	}
	if m, ok := to.(operand.Mem); ok {
		if m.Base == reg.FramePointer {
			t.Do(move+" F%r, "+m.Symbol.Name+fmt.Sprintf("%+d(FP)", m.Disp), t.pair(from)[0])
			return
		}
		base, off := t.address(m)
		t.store(size, t.pair(from)[0], base, off)
		return
	}
	m, ok := from.(operand.Mem)
	if !ok {
		t.fail("a move of one number between registers")
		return
	}
	base, off := t.address(m)
	t.load(size, t.pair(to)[0], base, off)
	t.rest(to)
}

// broadcast fills a register with a number in memory.
func (t *translator) broadcast(double bool, m operand.Mem, to operand.Op) {
	d := t.pair(to)
	move, repeat, fill, size := "FMOVS", "dup.s", "ld1r.4s", "s"
	if double {
		move, repeat, fill, size = "FMOVD", "dup.d", "ld1r.2d", "d"
	}
	if m.Base == reg.FramePointer {
		x := t.Vector()
		t.Set(x, move+" "+m.Symbol.Name+fmt.Sprintf("%+d(FP), F%%d", m.Disp))
		t.OpImm(repeat, 0, d[0], x)
	} else if base, off := t.address(m); off == 0 {
		t.Op(fill, d[0], base)
	} else {
		x := t.Vector()
		t.load(size, x, base, off)
		t.OpImm(repeat, 0, d[0], x)
	}
	if d[1] != d[0] && halves(to) == 2 {
		t.Move(d[1], d[0])
	}
	t.rest(to)
}

// permuteHalves translates the choice of two halves from two registers.
func (t *translator) permuteHalves(choice int, second, first, to operand.Op) {
	a, b, d := t.pair(first), t.source(second, false), t.pair(to)
	all := [4]Reg{a[0], a[1], b[0], b[1]}
	low, high := t.Vector(), t.Vector()
	t.Move(low, all[choice&3])
	t.Move(high, all[choice>>4&3])
	t.Move(d[0], low)
	t.Move(d[1], high)
}

// permute translates the choice of a number among eight for each place: the low three bits of the
// index count.
func (t *translator) permute(numbers, index, d pair) {
	if !t.permutes {
		t.permutes = true
		t.spread, t.order = t.Vector(), t.Vector()
		t.atEntry(func() {
			r := t.General()
			t.OpImm("movi.16b", 1, t.spread)
			t.Set(r, "MOVD $0x03020100, R%d")
			t.Op("dup.w", t.order, r)
		})
	}
	t.Adjacent(numbers[:]...)
	for h, x := range index {
		bytes, ok := t.bytesOf[x]
		if !ok { // four times the index in each byte, and 0 to 3 added
			bytes = t.Vector()
			t.OpImm("shl.4s", 29, bytes, x)
			t.OpImm("ushr.4s", 27, bytes, bytes)
			t.Op("mul.4s", bytes, bytes, t.spread)
			t.Op("add.4s", bytes, bytes, t.order)
			t.bytesOf[x] = bytes
		}
		t.Op("tbl2", d[h], numbers[0], bytes)
		t.insts[len(t.insts)-1].uses = append(t.insts[len(t.insts)-1].uses, numbers[1])
	}
}

// widenBytes translates the conversion of eight bytes to integers of 32 bits.
func (t *translator) widenBytes(from, to operand.Op) {
	d, bytes := t.pair(to), t.Vector()
	if m, ok := from.(operand.Mem); ok {
		base, off := t.address(m)
		t.load("d", bytes, base, off)
	} else {
		t.Move(bytes, t.pair(from)[0])
	}
	words := t.Vector()
	t.Op("uxtl.8h", words, bytes)
	t.Op("uxtl.4s", d[0], words)
	t.Op("uxtl2.4s", d[1], words)
}

// extreme translates minimum and maximum: the second operand of the processor, which is the first
// here, is the result if one is NaN or both are zero.
func (t *translator) extreme(opcode string, o []operand.Op) {
	compare := "fcmgt.4s"
	if strings.HasSuffix(opcode, "PD") {
		compare = "fcmgt.2d"
	}
	half := halves(o[2]) == 1
	b, a, d := t.source(o[0], half), t.source(o[1], half), t.pair(o[2])
	for h := range halves(o[2]) {
		x := t.Vector()
		if strings.HasPrefix(opcode, "VMIN") {
			t.Op(compare, x, b[h], a[h])
		} else {
			t.Op(compare, x, a[h], b[h])
		}
		switch d[h] {
		case b[h]:
			t.Op("bit.16b", d[h], a[h], x)
		case a[h]:
			t.Op("bif.16b", d[h], b[h], x)
		default:
			t.Op("bsl.16b", x, a[h], b[h])
			t.Move(d[h], x)
		}
	}
	t.rest(o[2])
}

// multiplyAdd translates fused multiply-adds.
func (t *translator) multiplyAdd(opcode string, o []operand.Op) {
	half := halves(o[2]) == 1
	m, n, d := t.source(o[0], half), t.source(o[1], half), t.pair(o[2])
	for h := range halves(o[2]) {
		switch opcode {
		case "VFMADD231PS":
			t.Op("fmla.4s", d[h], n[h], m[h])
		case "VFMADD231PD":
			t.Op("fmla.2d", d[h], n[h], m[h])
		case "VFNMADD231PS":
			t.Op("fmls.4s", d[h], n[h], m[h])
		default: // d = n·d + m, or - m
			x := t.Vector()
			if opcode == "VFMSUB213PS" {
				t.Op("fneg.4s", x, m[h])
			} else {
				t.Move(x, m[h])
			}
			t.Op("fmla.4s", x, n[h], d[h])
			t.Move(d[h], x)
		}
	}
	t.rest(o[2])
}

// Predicates of comparisons.
const (
	equal        = 0x00
	ordered      = 0x07
	notLessEqual = 0x16
	greater      = 0x1e
)

func (t *translator) compare(predicate int, second, first, to operand.Op) {
	half := halves(to) == 1
	b, a, d := t.source(second, half), t.source(first, half), t.pair(to)
	for h := range halves(to) {
		x := t.Vector()
		switch predicate {
		case equal:
			t.Op("fcmeq.4s", x, a[h], b[h])
		case ordered:
			y := t.Vector()
			t.Op("fcmeq.4s", x, a[h], a[h])
			t.Op("fcmeq.4s", y, b[h], b[h])
			t.Op("and.16b", x, x, y)
		case notLessEqual:
			t.Op("fcmge.4s", x, b[h], a[h])
			t.Op("mvn.16b", x, x)
		case greater:
			t.Op("fcmgt.4s", x, a[h], b[h])
		default:
			t.fail("no translation of predicate %#x", predicate)
		}
		t.Move(d[h], x)
	}
	t.rest(to)
}

// moveMasked translates a masked load or store. A mask selects the first numbers of a register: the
// first one that it does not select is the end.
func (t *translator) moveMasked(a, b, c operand.Op) {
	m, isLoad := a.(operand.Mem)
	data := c
	if !isLoad {
		m, data = c.(operand.Mem), a
	}
	v, mask := t.pair(data), t.pair(b)
	base, off := t.address(m)
	end := t.local("masked")
	if isLoad {
		x := make([]Reg, halves(data)) // v may be the mask
		for h := range x {
			x[h] = t.Vector()
			t.clear(x[h])
		}
		for h := range x {
			t.maskedHalf(true, x[h], mask[h], base, off+16*h, end)
		}
		t.Label(end)
		for h := range x {
			t.Move(v[h], x[h])
		}
		t.rest(data)
		return
	}
	for h := range halves(data) {
		t.maskedHalf(false, v[h], mask[h], base, off+16*h, end)
	}
	t.Label(end)
}

// maskedHalf loads or stores up to four numbers, and jumps to end after fewer than four. What it
// loads is set to zero before.
func (t *translator) maskedHalf(isLoad bool, v, mask, base Reg, off int, end string) {
	access, lane := t.store, "st1.s"
	if isLoad {
		access, lane = t.load, "ld1.s"
	}
	jumpUnless := func(number int, label string) {
		w := t.General()
		t.OpImm("umov.s", number, w, mask)
		t.JumpZero(w, label)
	}
	few, one := t.local("few"), t.local("one")
	all := t.local("all")
	jumpUnless(3, few)
	access("q", v, base, off)
	t.Jump("", all)
	t.Label(few)
	jumpUnless(1, one)
	access("d", v, base, off)
	jumpUnless(2, end)
	t.OpImm(lane, 2, v, t.plus(base, off+8))
	t.Jump("", end)
	t.Label(one)
	jumpUnless(0, end)
	access("s", v, base, off)
	t.Jump("", end)
	t.Label(all)
}

// gather translates loads of selected numbers. A mask selects the first ones.
func (t *translator) gather(mask operand.Op, m operand.Mem, to operand.Op) {
	selected, index, d := t.pair(mask), t.pair(m.Index), t.pair(to)
	base, end := t.general(m.Base), t.local("gathered")
	for k := range 8 {
		w, i, at := t.General(), t.General(), t.General()
		t.OpImm("umov.s", k%4, w, selected[k/4])
		t.JumpZero(w, end)
		t.OpImm("umov.s", k%4, i, index[k/4])
		t.Set(at, "ADD R%r.SXTW<<2, R%r, R%d", i, base)
		t.OpImm("ld1.s", k%4, d[k/4], at)
	}
	t.Label(end)
}

// generalInstruction translates instructions on integers and pointers.
func (t *translator) generalInstruction(n *ir.Instruction, flags bool) {
	o := n.Operands
	if t.integer(n.Opcode, o, flags) {
		return
	}
	switch n.Opcode {
	case "RET":
		t.Return()
	case "SFENCE": // stores reach other processors in the order that Go's synchronization wants
	case "MOVQ", "MOVL":
		t.moveGeneral(n.Opcode, o[0], o[1])
	case "LEAQ":
		t.lea(o[0].(operand.Mem), t.general(o[1].(reg.Register)))
	case "CMPQ":
		a := t.value(o[0])
		if i, ok := immediate(o[1]); ok {
			t.Do(fmt.Sprintf("CMP $%d, R%%r", i), a)
			return
		}
		t.Do("CMP R%r, R%r", t.value(o[1]), a)
	case "TESTQ":
		if i, ok := immediate(o[0]); ok {
			t.Do(fmt.Sprintf("TST $%d, R%%r", i), t.value(o[1]))
			return
		}
		t.Do("TST R%r, R%r", t.value(o[0]), t.value(o[1]))
	case "PREFETCHT0", "PREFETCHT1":
		t.prefetch(n.Opcode, o[0].(operand.Mem))
	default:
		if name, ok := strings.CutPrefix(n.Opcode, "CMOVQ"); ok && conditions[name] != "" {
			d := t.general(o[1].(reg.Register))
			t.Set(d, "CSEL "+conditions[name]+", R%r, R%r, R%d", t.value(o[0]), d)
			return
		}
		t.fail("no translation of %s", n.Opcode)
	}
}

// integer translates arithmetic on integers, and reports whether the instruction is that.
func (t *translator) integer(opcode string, o []operand.Op, flags bool) bool {
	switch opcode {
	case "ADDQ", "SUBQ", "ANDQ":
		if i, ok := immediate(o[0]); ok {
			t.change(opcode[:3], fmt.Sprintf("$%d", i), o[1], flags)
		} else {
			t.change(opcode[:3], "R%r", o[1], flags, t.value(o[0]))
		}
	case "ADDL":
		d := t.general(o[1].(reg.Register))
		t.Flags(d, "ADDSW R%r, R%r, R%d", t.general(o[0].(reg.Register)), d)
	case "DECQ":
		t.change("SUB", "$1", o[0], flags)
	case "INCQ":
		t.change("ADD", "$1", o[0], flags)
	case "NEGQ":
		d := t.general(o[0].(reg.Register))
		t.Set(d, "NEG R%r, R%d", d)
	case "XORQ":
		if o[0] != o[1] {
			t.fail("no translation of XORQ of two registers")
		}
		t.Set(t.general(o[1].(reg.Register)), "MOVD $0, R%d")
	case "SHLQ":
		t.change("LSL", fmt.Sprintf("$%d", mustImmediate(o[0])), o[1], flags)
	case "SHRQ":
		t.change("LSR", fmt.Sprintf("$%d", mustImmediate(o[0])), o[1], flags)
	case "IMULQ":
		t.change("MUL", "R%r", o[1], flags, t.value(o[0]))
	default:
		return false
	}
	return true
}

// change appends an operation on a register and another operand, which sets the condition flags if
// something reads them.
func (t *translator) change(op, by string, to operand.Op, flags bool, read ...Reg) {
	d := t.general(to.(reg.Register))
	text, read := " "+by+", R%r, R%d", append(read, d)
	switch {
	case !flags:
		t.Set(d, op+text, read...)
	case op == "ADD" || op == "SUB" || op == "AND":
		t.Flags(d, op+"S"+text, read...)
	default:
		t.Set(d, op+text, read...)
		t.Do("TST R%r, R%r", d, d)
	}
}

// lea adds the parts of an address.
func (t *translator) lea(m operand.Mem, d Reg) {
	base, off := t.address(m)
	if off == 0 {
		t.Move(d, base)
		return
	}
	t.Set(d, fmt.Sprintf("ADD $%d, R%%r, R%%d", off), base)
}

// prefetch asks for a cache line.
func (t *translator) prefetch(opcode string, m operand.Mem) {
	base, off := t.address(m)
	if off < 0 || off%8 != 0 || off >= 8*4096 {
		base, off = t.plus(base, off), 0
	}
	level := map[string]string{"PREFETCHT0": "PLDL1KEEP", "PREFETCHT1": "PLDL2KEEP"}[opcode]
	t.Do(fmt.Sprintf("PRFM %d(R%%r), %s", off, level), base)
}

// value returns a register that holds an operand of 64 bits.
func (t *translator) value(o operand.Op) Reg {
	if r, ok := o.(reg.Register); ok {
		return t.general(r)
	}
	r := t.General()
	if i, ok := immediate(o); ok {
		t.Set(r, fmt.Sprintf("MOVD $%d, R%%d", i))
		return r
	}
	t.loadGeneral("MOVD", o.(operand.Mem), r)
	return r
}

// loadGeneral loads an integer or a pointer.
func (t *translator) loadGeneral(op string, m operand.Mem, d Reg) {
	switch m.Base {
	case reg.FramePointer:
		t.Set(d, fmt.Sprintf("%s %s%+d(FP), R%%d", op, m.Symbol.Name, m.Disp))
	case reg.StackPointer:
		t.Move(d, t.slot(m.Disp))
	default:
		base, off := t.address(m)
		t.Set(d, fmt.Sprintf("%s %d(R%%r), R%%d", op, off), base)
	}
}

// slot returns the register for a place on the stack: there are enough.
func (t *translator) slot(at int) Reg {
	r, ok := t.slots[at]
	if !ok {
		r = t.General()
		t.slots[at] = r
	}
	return r
}

// moveGeneral translates a move of 64 or 32 bits.
func (t *translator) moveGeneral(opcode string, from, to operand.Op) {
	if m, ok := to.(operand.Mem); ok {
		if m.Base == reg.StackPointer {
			t.Move(t.slot(m.Disp), t.general(from.(reg.Register)))
			return
		}
		op := map[string]string{"MOVQ": "MOVD", "MOVL": "MOVW"}[opcode]
		base, off := t.address(m)
		t.Do(fmt.Sprintf("%s R%%r, %d(R%%r)", op, off), t.general(from.(reg.Register)), base)
		return
	}
	d := t.general(to.(reg.Register))
	switch from := from.(type) {
	case operand.Mem:
		t.loadGeneral(map[string]string{"MOVQ": "MOVD", "MOVL": "MOVWU"}[opcode], from, d)
	case reg.Register:
		if opcode == "MOVL" {
			t.Set(d, "MOVWU R%r, R%d", t.general(from))
			return
		}
		t.Move(d, t.general(from))
	default:
		t.Set(d, fmt.Sprintf("MOVD $%d, R%%d", mustImmediate(from)))
	}
}

// immediate returns the value of an immediate operand.
func immediate(o operand.Op) (int64, bool) {
	switch v := o.(type) {
	case operand.U8:
		return int64(v), true
	case operand.U32:
		return int64(v), true
	case operand.U64:
		return int64(v), true
	case operand.I8:
		return int64(v), true
	case operand.I32:
		return int64(v), true
	}
	return 0, false
}

func mustImmediate(o operand.Op) int64 {
	i, ok := immediate(o)
	if !ok {
		panic("arm64: " + o.Asm() + " is not an immediate operand")
	}
	return i
}
