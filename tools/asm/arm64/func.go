package arm64

import (
	"fmt"
	"slices"
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
	// text prints the instruction, given the numbers of the registers that it sets and of those that it
	// reads
	text       func(set, read numbers) string
	defs, uses []Reg
	tied       []Reg  // registers that it both reads and sets, in one operand
	to         string // the label that it may jump to
	ends       bool   // the next instruction is not executed after it
	effect     bool   // it does more than set defs
	move       bool   // it copies uses[0] to defs[0]
}

// numbers returns the number of a register.
type numbers func(Reg) int

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
func (f *Func) Adjacent(vs ...Reg) { f.adjacent = append(f.adjacent, slices.Clone(vs)) }

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
	f.add(inst{text: func(_, _ numbers) string { return op + " " + label }, to: label, ends: condition == "",
		effect: true})
}

// JumpZero jumps to a label if a register is zero.
func (f *Func) JumpZero(r Reg, label string) { f.jumpOn("CBZ", r, label) }

// JumpNonzero jumps to a label if a register is not zero.
func (f *Func) JumpNonzero(r Reg, label string) { f.jumpOn("CBNZ", r, label) }

func (f *Func) jumpOn(op string, r Reg, label string) {
	f.add(inst{text: func(_, n numbers) string { return fmt.Sprintf("%s R%d, %s", op, n(r), label) }, uses: []Reg{r},
		to: label, effect: true})
}

// Return returns from the function.
func (f *Func) Return() {
	f.add(inst{text: func(_, _ numbers) string { return "RET" }, ends: true, effect: true})
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
		f.add(inst{text: func(set, read numbers) string {
			return word("mov.16b", fields{'d': set(d), 'n': read(s), 'm': read(s)})
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
func texts(format string, d *Reg, from []Reg) func(set, read numbers) string {
	return func(set, read numbers) string {
		text, i := format, 0
		for strings.Contains(text, "%r") {
			text = strings.Replace(text, "%r", fmt.Sprint(read(from[i])), 1)
			i++
		}
		if d != nil {
			text = strings.ReplaceAll(text, "%d", fmt.Sprint(set(*d)))
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
	i := inst{uses: append([]Reg{}, operands...), text: func(set, read numbers) string {
		at := fields{'i': imm}
		if o.store {
			at['d'] = read(d)
		} else {
			at['d'] = set(d)
		}
		for k, r := range operands {
			at["nm"[k]] = read(r)
		}
		return word(name, at)
	}}
	switch {
	case o.store:
		i.uses, i.effect = append(i.uses, d), true
	case o.keeps:
		i.uses, i.defs, i.tied = append(i.uses, d), []Reg{d}, []Reg{d}
	default:
		i.defs = []Reg{d}
	}
	f.add(i)
}

// OpPair appends a load or a store of two registers.
func (f *Func) OpPair(name string, imm int, d, e, base Reg) {
	o := ops[name]
	i := inst{text: func(set, read numbers) string {
		data := set
		if o.store {
			data = read
		}
		return word(name, fields{'d': data(d), 'm': data(e), 'n': read(base), 'i': imm})
	}}
	switch {
	case o.store:
		i.uses, i.effect = []Reg{d, e, base}, true
	case o.advances:
		i.defs, i.uses, i.tied = []Reg{d, e, base}, []Reg{base}, []Reg{base}
	default:
		i.defs, i.uses = []Reg{d, e}, []Reg{base}
	}
	f.add(i)
}

// StoreGroup appends a store of adjacent registers, number by number in turn.
func (f *Func) StoreGroup(name string, base Reg, vs ...Reg) {
	f.Adjacent(vs...)
	f.add(inst{uses: append([]Reg{base}, vs...), effect: true, text: func(_, n numbers) string {
		return word(name, fields{'d': n(vs[0]), 'n': n(base)})
	}})
}

// Advance appends a load that then adds to its base: an immediate number of bytes, or a register.
func (f *Func) Advance(name string, imm int, d, base Reg, by ...Reg) {
	uses := append([]Reg{base}, by...)
	f.add(inst{defs: []Reg{d, base}, uses: uses, tied: []Reg{base}, text: func(set, read numbers) string {
		at := fields{'d': set(d), 'n': read(base), 'i': imm}
		for _, r := range by {
			at['m'] = read(r)
		}
		return word(name, at)
	}})
}

// Prefetch prefetches the cache line at the sum of two registers.
func (f *Func) Prefetch(base, plus Reg) {
	f.add(inst{uses: []Reg{base, plus}, effect: true, text: func(_, n numbers) string {
		return word("prfm", fields{'n': n(base), 'm': n(plus)})
	}})
}

// JumpBit jumps to a label if a bit of a register is zero.
func (f *Func) JumpBit(bit int, r Reg, label string) {
	f.add(inst{text: func(_, n numbers) string { return fmt.Sprintf("TBZ $%d, R%d, %s", bit, n(r), label) },
		uses: []Reg{r}, to: label, effect: true})
}
