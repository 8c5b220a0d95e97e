package arm64

import (
	"fmt"
	"strings"
)

// class is a kind of registers.
type class uint8

const (
	general class = iota // 64 bits
	vector               // 128 bits
)

// Reg is a virtual register.
type Reg struct {
	class class
	id    int
}

// inst is an instruction, or a label.
type inst struct {
	label string
	// text prints the instruction, given the numbers of the registers
	text       func(number func(Reg) int) string
	defs, uses []Reg
	to         string // the label that it may jump to
	ends       bool   // the next instruction is not executed after it
	effect     bool   // it does more than set defs
	move       bool   // it copies uses[0] to defs[0]
}

// Func is a function. Its methods append instructions.
type Func struct {
	name     string
	argBytes int
	insts    []inst
	entry    []inst  // before all others
	count    [2]int  // virtual registers by class
	adjacent [][]Reg // registers whose numbers follow each other
	low      []Reg   // registers with numbers below 16
	labels   int
	fault    error
}

// NewFunc returns a function without instructions whose parameters and results have so many bytes.
func NewFunc(name string, argBytes int) *Func { return &Func{name: name, argBytes: argBytes} }

// General returns a new register of 64 bits.
func (f *Func) General() Reg { return f.register(general) }

// Vector returns a new register of 128 bits.
func (f *Func) Vector() Reg { return f.register(vector) }

func (f *Func) register(c class) Reg {
	f.count[c]++
	return Reg{c, f.count[c] - 1}
}

// fail keeps the first error.
func (f *Func) fail(format string, args ...any) {
	if f.fault == nil {
		f.fault = fmt.Errorf("arm64: "+f.name+": "+format, args...)
	}
}

func (f *Func) add(i inst) { f.insts = append(f.insts, i) }

// Adjacent gives vectors numbers that follow each other, as some instructions want.
func (f *Func) Adjacent(vs ...Reg) { f.adjacent = append(f.adjacent, vs) }

// Low gives vectors numbers below 16: a multiplication by one number of eight reads no other.
func (f *Func) Low(vs ...Reg) { f.low = append(f.low, vs...) }

// Label marks the place that jumps to it reach.
func (f *Func) Label(name string) { f.add(inst{label: name}) }

// local returns a label that no other place has.
func (f *Func) local(name string) string {
	f.labels++
	return fmt.Sprint(name, "_", f.labels)
}

// Jump jumps to a label, always or under a condition such as NE.
func (f *Func) Jump(condition, label string) {
	op := "B" + condition
	f.add(inst{text: func(func(Reg) int) string { return op + " " + label }, to: label, ends: condition == "",
		effect: true})
}

// JumpZero jumps to a label if a register is zero.
func (f *Func) JumpZero(r Reg, label string) {
	f.add(inst{text: func(n func(Reg) int) string { return fmt.Sprintf("CBZ R%d, %s", n(r), label) }, uses: []Reg{r},
		to: label, effect: true})
}

// Return returns from the function.
func (f *Func) Return() {
	f.add(inst{text: func(func(Reg) int) string { return "RET" }, ends: true, effect: true})
}

// Set appends an instruction of Go's assembler that sets d. In format each %r stands for one of the
// registers that are read, and %d for d.
func (f *Func) Set(d Reg, format string, read ...Reg) {
	f.add(inst{text: texts(format, &d, read), defs: []Reg{d}, uses: read})
}

// Flags appends one that also sets the condition flags.
func (f *Func) Flags(d Reg, format string, read ...Reg) {
	f.add(inst{text: texts(format, &d, read), defs: []Reg{d}, uses: read, effect: true})
}

// Do appends one that sets no register.
func (f *Func) Do(format string, read ...Reg) {
	f.add(inst{text: texts(format, nil, read), uses: read, effect: true})
}

// Move copies a register.
func (f *Func) Move(d, s Reg) {
	if d.class == vector {
		f.add(inst{text: func(n func(Reg) int) string {
			return word("mov.16b", fields{'d': n(d), 'n': n(s), 'm': n(s)})
		}, defs: []Reg{d}, uses: []Reg{s}, move: true})
		return
	}
	f.add(inst{text: texts("MOVD R%r, R%d", &d, []Reg{s}), defs: []Reg{d}, uses: []Reg{s}, move: true})
}

// atEntry appends what do appends at the beginning of the function instead.
func (f *Func) atEntry(do func()) {
	body := f.insts
	f.insts = f.entry
	do()
	f.entry, f.insts = f.insts, body
}

// texts returns the printing of an instruction of Go's assembler.
func texts(format string, d *Reg, read []Reg) func(func(Reg) int) string {
	return func(n func(Reg) int) string {
		text, i := format, 0
		for strings.Contains(text, "%r") {
			text = strings.Replace(text, "%r", fmt.Sprint(n(read[i])), 1)
			i++
		}
		if d != nil {
			text = strings.ReplaceAll(text, "%d", fmt.Sprint(n(*d)))
		}
		return text
	}
}

// Op appends an instruction on vectors: d = op(n, m), or with three operands in the table's order.
// Operations that keep a part of d read it too.
func (f *Func) Op(name string, d Reg, operands ...Reg) { f.OpImm(name, 0, d, operands...) }

// OpImm appends one that has an immediate operand.
func (f *Func) OpImm(name string, imm int, d Reg, operands ...Reg) {
	o, ok := ops[name]
	if !ok {
		f.fail("no instruction %s", name)
		return
	}
	uses := append([]Reg{}, operands...)
	if o.keeps {
		uses = append(uses, d)
	}
	i := inst{uses: uses, text: func(n func(Reg) int) string {
		at := fields{'i': imm, 'd': n(d)}
		for k, r := range operands {
			at["nm"[k]] = n(r)
		}
		return word(name, at)
	}}
	if o.store {
		i.uses, i.effect = append(uses, d), true
	} else {
		i.defs = []Reg{d}
	}
	f.add(i)
}

// OpPair appends a load or a store of two registers.
func (f *Func) OpPair(name string, imm int, d, e, base Reg) {
	o := ops[name]
	i := inst{text: func(n func(Reg) int) string {
		return word(name, fields{'d': n(d), 'm': n(e), 'n': n(base), 'i': imm})
	}}
	switch {
	case o.store:
		i.uses, i.effect = []Reg{d, e, base}, true
	case o.advances:
		i.defs, i.uses = []Reg{d, e, base}, []Reg{base}
	default:
		i.defs, i.uses = []Reg{d, e}, []Reg{base}
	}
	f.add(i)
}

// StoreGroup appends a store of adjacent registers, number by number in turn.
func (f *Func) StoreGroup(name string, base Reg, vs ...Reg) {
	f.Adjacent(vs...)
	f.add(inst{uses: append([]Reg{base}, vs...), effect: true, text: func(n func(Reg) int) string {
		return word(name, fields{'d': n(vs[0]), 'n': n(base)})
	}})
}

// Advance appends a load that then adds to its base: an immediate number of bytes, or a register.
func (f *Func) Advance(name string, imm int, d, base Reg, by ...Reg) {
	uses := append([]Reg{base}, by...)
	f.add(inst{defs: []Reg{d, base}, uses: uses, text: func(n func(Reg) int) string {
		at := fields{'d': n(d), 'n': n(base), 'i': imm}
		for _, r := range by {
			at['m'] = n(r)
		}
		return word(name, at)
	}})
}

// Prefetch prefetches the cache line at the sum of two registers.
func (f *Func) Prefetch(base, plus Reg) {
	f.add(inst{uses: []Reg{base, plus}, effect: true, text: func(n func(Reg) int) string {
		return word("prfm", fields{'n': n(base), 'm': n(plus)})
	}})
}

// JumpBit jumps to a label if a bit of a register is zero.
func (f *Func) JumpBit(bit int, r Reg, label string) {
	f.add(inst{text: func(n func(Reg) int) string { return fmt.Sprintf("TBZ $%d, R%d, %s", bit, n(r), label) },
		uses: []Reg{r}, to: label, effect: true})
}
