package arm64

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pair is a register of eight float32, or of four float64. Both halves are the same register if it
// holds one number in all places.
type pair [2]Reg

// translator makes one function.
type translator struct {
	*Func
	vectors  map[reg.ID]pair
	generals map[reg.ID]Reg
	slots    map[int]Reg // places on the stack, by offset
	wide     map[reg.ID]bool
	uniform  map[reg.ID]bool
	symbols  map[string]Reg
	flags    []bool // whether something reads the condition flags that an instruction sets

	// what registers hold, from here to the next label
	places    map[place]Reg
	bytesOf   map[Reg]Reg // the places of the bytes of numbers of eight, for permutations
	constant  operand.Mem
	constants Reg

	spread, order Reg // the constants of permutations, if spread is set
	permutes      bool
}

// place is an address that is computed from two registers.
type place struct {
	base, index reg.ID
	scale       uint8
}

// Translate makes a function for arm64 from one with instructions of AVX2.
func Translate(fn *ir.Function) (*Func, error) {
	t := &translator{Func: NewFunc(fn.Name, fn.ArgumentBytes()), vectors: map[reg.ID]pair{},
		generals: map[reg.ID]Reg{}, slots: map[int]Reg{}, wide: map[reg.ID]bool{}, uniform: map[reg.ID]bool{},
		symbols: map[string]Reg{}}
	t.findUniform(fn)
	t.findFlags(fn)
	t.forget()
	at := 0
	for _, n := range fn.Nodes {
		switch n := n.(type) {
		case ir.Label:
			t.forget()
			t.Label(string(n))
		case *ir.Instruction:
			t.instruction(n, t.flags[at])
			t.forgetSet(n)
			at++
		}
	}
	return t.Func, t.fault
}

// forget drops what is known of registers.
func (t *translator) forget() {
	t.places, t.bytesOf, t.constant = map[place]Reg{}, map[Reg]Reg{}, operand.Mem{}
}

// forgetSet drops what is known of the registers that an instruction sets.
func (t *translator) forgetSet(n *ir.Instruction) {
	for _, r := range n.OutputRegisters() {
		if r.Kind() == reg.KindVector {
			for _, half := range t.pair(r) {
				delete(t.bytesOf, half)
			}
			continue
		}
		for p := range t.places {
			if p.base == r.ID() || p.index == r.ID() {
				delete(t.places, p)
			}
		}
	}
}

// findUniform finds the registers that always hold one number in all places, and those of which all
// eight numbers are used.
func (t *translator) findUniform(fn *ir.Function) {
	other := map[reg.ID]bool{}
	for _, n := range fn.Instructions() {
		for _, r := range n.Registers() {
			if r.Kind() == reg.KindVector && r.Size() == 32 {
				t.wide[r.ID()] = true
			}
		}
	}
	for _, n := range fn.Instructions() {
		for _, r := range n.OutputRegisters() {
			if r.Kind() != reg.KindVector {
				continue
			}
			t.uniform[r.ID()] = true
			if !isUniform(n) || r.Size() != 32 && t.wide[r.ID()] {
				other[r.ID()] = true
			}
		}
	}
	for id := range other {
		delete(t.uniform, id)
	}
}

// isUniform reports whether an instruction sets all numbers of a register to one.
func isUniform(n *ir.Instruction) bool {
	switch n.Opcode {
	case "VBROADCASTSS", "VBROADCASTSD":
		return true
	case "VXORPS", "VXORPD", "VPCMPEQD":
		return n.Operands[0] == n.Operands[1]
	case "VMOVUPS":
		return isConstant(n.Operands[0])
	}
	return false
}

// isConstant reports whether an operand is a number that fills 32 bytes of memory.
func isConstant(o operand.Op) bool {
	m, ok := o.(operand.Mem)
	return ok && strings.HasSuffix(m.Symbol.Name, "Constants") && m.Base == reg.StaticBase
}

// readsFlags reports whether an instruction depends on the condition flags.
func readsFlags(n *ir.Instruction) bool {
	return n.IsConditional || strings.HasPrefix(n.Opcode, "CMOV")
}

// setsFlags reports whether an instruction that Translate knows changes all condition flags that
// something reads.
func setsFlags(n *ir.Instruction) bool {
	switch n.Opcode {
	case "ADDQ", "SUBQ", "ADDL", "ANDQ", "DECQ", "INCQ", "CMPQ", "TESTQ", "NEGQ", "XORQ", "SHLQ", "SHRQ", "IMULQ":
		return true
	}
	return false
}

// findFlags finds the instructions whose condition flags are read.
func (t *translator) findFlags(fn *ir.Function) {
	all := fn.Instructions()
	labels, at := map[ir.Label]int{}, 0
	for _, n := range fn.Nodes {
		switch n := n.(type) {
		case ir.Label:
			labels[n] = at
		case *ir.Instruction:
			at++
		}
	}
	before := make([]bool, len(all)+1)
	t.flags = make([]bool, len(all))
	for changed := true; changed; {
		changed = false
		for i := len(all) - 1; i >= 0; i-- {
			n := all[i]
			after := !n.IsTerminal && !n.IsUnconditionalBranch() && before[i+1]
			if l := n.TargetLabel(); l != nil {
				after = after || before[labels[*l]]
			}
			needs := readsFlags(n) || after && !setsFlags(n)
			changed = changed || needs != before[i] || after != t.flags[i]
			before[i], t.flags[i] = needs, after
		}
	}
	for i, n := range all {
		t.flags[i] = t.flags[i] && setsFlags(n)
	}
}

// general returns the register for one of amd64.
func (t *translator) general(r reg.Register) Reg {
	g, ok := t.generals[r.ID()]
	if !ok {
		g = t.General()
		t.generals[r.ID()] = g
	}
	return g
}

// pair returns the registers for one of AVX2.
func (t *translator) pair(o operand.Op) pair {
	r := o.(reg.Register)
	p, ok := t.vectors[r.ID()]
	if !ok {
		p[0] = t.Vector()
		p[1] = p[0]
		if !t.uniform[r.ID()] {
			p[1] = t.Vector()
		}
		t.vectors[r.ID()] = p
	}
	return p
}

// symbol returns the address of a table, which is loaded once.
func (t *translator) symbol(s operand.Symbol) Reg {
	r, ok := t.symbols[s.Name]
	if !ok {
		r = t.General()
		t.atEntry(func() { t.Set(r, "MOVD $"+s.String()+"(SB), R%d") })
		t.symbols[s.Name] = r
	}
	return r
}

// address returns a register and an offset from it.
func (t *translator) address(m operand.Mem) (Reg, int) {
	var base Reg
	switch m.Base {
	case reg.StaticBase:
		base = t.symbol(m.Symbol)
	case reg.FramePointer, reg.StackPointer:
		t.fail("address %s", m.Asm())
		return t.General(), 0
	default:
		base = t.general(m.Base)
	}
	if m.Index == nil || m.Scale == 0 {
		return base, m.Disp
	}
	p := place{m.Base.ID(), m.Index.ID(), m.Scale}
	sum, ok := t.places[p]
	if !ok {
		sum = t.General()
		shift := map[uint8]int{1: 0, 2: 1, 4: 2, 8: 3}[m.Scale]
		t.Set(sum, fmt.Sprintf("ADD R%%r<<%d, R%%r, R%%d", shift), t.general(m.Index), base)
		t.places[p] = sum
	}
	return sum, m.Disp
}

// plus returns a register with an address, and the offset zero.
func (t *translator) plus(base Reg, off int) Reg {
	if off == 0 {
		return base
	}
	r := t.General()
	t.Set(r, fmt.Sprintf("ADD $%d, R%%r, R%%d", off), base)
	return r
}

// access loads or stores a vector register: size is q, d or s.
func (t *translator) access(op, size string, v, base Reg, off int) {
	for _, name := range []string{op + "r." + size, op[:2] + "ur." + size} {
		if encodes(name, off) {
			t.OpImm(name, off, v, base)
			return
		}
	}
	t.OpImm(op+"r."+size, 0, v, t.plus(base, off))
}

func (t *translator) load(size string, v, base Reg, off int)  { t.access("ld", size, v, base, off) }
func (t *translator) store(size string, v, base Reg, off int) { t.access("st", size, v, base, off) }

// move2 loads or stores a pair.
func (t *translator) move2(op string, v pair, base Reg, off int) {
	if name := op + ".q"; encodes(name, off) {
		t.OpPair(name, off, v[0], v[1], base)
		return
	}
	if op == "stnp" {
		op = "stp"
	}
	t.access(op[:2], "q", v[0], base, off)
	t.access(op[:2], "q", v[1], base, off+16)
}

// source returns the registers of an operand, which it loads if it is in memory. half says that the
// operand has 16 bytes.
func (t *translator) source(o operand.Op, half bool) pair {
	m, ok := o.(operand.Mem)
	if !ok {
		return t.pair(o)
	}
	if isConstant(o) {
		if m != t.constant {
			t.constant, t.constants = m, t.Vector()
			base, off := t.address(m)
			t.load("q", t.constants, base, off)
		}
		return pair{t.constants, t.constants}
	}
	base, off := t.address(m)
	v := pair{t.Vector(), t.Vector()}
	if half {
		t.load("q", v[0], base, off)
	} else {
		t.move2("ldp", v, base, off)
	}
	return v
}

// halves returns how many registers an operand stands for.
func halves(o operand.Op) int {
	if r, ok := o.(reg.Register); ok && r.Size() == 16 {
		return 1
	}
	return 2
}

// clear sets a register to zero.
func (t *translator) clear(v Reg) { t.OpImm("movi.16b", 0, v) }

// rest sets the upper half of a register to zero after an instruction that wrote the lower one.
func (t *translator) rest(o operand.Op) {
	if r := o.(reg.Register); r.Size() == 16 && t.wide[r.ID()] {
		t.clear(t.pair(o)[1])
	}
}
