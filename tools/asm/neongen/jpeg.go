package main

import (
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"fspda/tools/asm/arm64"
)

var inverseDeclaration = declaration{"inverseNEON",
	"func(dst *uint8, stride int, blocks *int16, quant *[64]int16, pairs int)", "is inverseGo."}

// factors are the products of pass of package jpeg, in two registers of eight.
var factors = []int{4433, -10704, 10703, -6436, 9633, 6437, -7373, 4926, -20995, 4177, -4176, -4927, 0, 0, 0, 0}

const factorsName = "jpegFactors"

// inverseData writes the factors.
func inverseData(c *build.Context) {
	c.StaticGlobal(factorsName)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range factors {
		c.AddDatum(2*i, operand.U16(uint16(int16(v))))
	}
}

// transform writes the inverse transform: a row of eight values of 16 bits is a register.
type transform struct {
	*arm64.Func
	factors [2]arm64.Reg
	round   [2]arm64.Reg // of the passes
}

// inverse writes one block after the other.
func inverse(f *arm64.Func) {
	t := &transform{Func: f, factors: [2]arm64.Reg{f.Vector(), f.Vector()},
		round: [2]arm64.Reg{f.Vector(), f.Vector()}}
	f.Low(t.factors[:]...)
	dst, stride, blocks := argument(f, "dst", 0), argument(f, "stride", 8), argument(f, "blocks", 16)
	quant, left := argument(f, "quant", 24), argument(f, "pairs", 32)
	f.Set(left, "ADD R%r, R%r, R%d", left, left)
	table, middle, w := f.General(), f.Vector(), f.General()
	f.Set(table, "MOVD $"+factorsName+"<>(SB), R%d")
	f.OpPair("ldp.q", 0, t.factors[0], t.factors[1], table)
	for i, shift := range passShifts {
		f.Set(w, "MOVD $"+itoa(1<<(shift-1))+", R%d")
		f.Op("dup.w", t.round[i], w)
	}
	f.OpImm("movi.16b", 128, middle)
	repeat(f, "block", left, func() {
		v := vectors(f, 8)
		for i := 0; i < 8; i += 2 {
			q := vectors(f, 2)
			f.OpPair("ldp.q", 16*i, v[i], v[i+1], blocks)
			f.OpPair("ldp.q", 16*i, q[0], q[1], quant)
			f.Op("mul.8h", v[i], v[i], q[0])
			f.Op("mul.8h", v[i+1], v[i+1], q[1])
		}
		v = t.transposed(t.pass(v, 0))
		v = t.transposed(t.pass(v, 1))
		row := f.General()
		f.Move(row, dst)
		for i, x := range v {
			p := f.Vector()
			f.Op("sqxtn.8b", p, x)
			f.Op("eor.16b", p, p, middle) // adds 128
			f.OpImm("str.d", 0, p, row)
			if i < 7 {
				next := f.General()
				f.Set(next, "ADD R%r, R%r, R%d", stride, row)
				row = next
			}
		}
		increase(f, blocks, 128)
		increase(f, dst, 8)
	})
	f.Return()
}

// passShifts are the shifts of the passes over columns and rows.
var passShifts = [2]int{11, 18}

// sums are eight sums of 32 bits.
type sums [2]arm64.Reg

// times returns a·factor, plus b·other if that is not zero.
func (t *transform) times(a arm64.Reg, factor int, b arm64.Reg, other int) (s sums) {
	for h := range s {
		s[h] = t.Vector()
		t.multiply([]string{"smull.h", "smull2.h"}[h], s[h], a, factor)
	}
	t.addTimes(s, b, other)
	return s
}

// addTimes adds a·factor.
func (t *transform) addTimes(s sums, a arm64.Reg, factor int) {
	for h := range s {
		t.multiply([]string{"smlal.h", "smlal2.h"}[h], s[h], a, factor)
	}
}

func (t *transform) multiply(op string, d, a arm64.Reg, factor int) {
	i := slices.Index(factors, factor)
	t.OpImm(op, i%8, d, a, t.factors[i/8])
}

// both returns the sum and the difference of two rows of sums.
func (t *transform) both(op [2]string, a, b sums) (plus, minus sums) {
	for h := range a {
		plus[h], minus[h] = t.Vector(), t.Vector()
		t.Op(op[0], plus[h], a[h], b[h])
		t.Op(op[1], minus[h], a[h], b[h])
	}
	return plus, minus
}

var add32 = [2]string{"add.4s", "sub.4s"}

// pass transforms eight rows, as pass of package jpeg does with each column.
func (t *transform) pass(v []arm64.Reg, n int) []arm64.Reg {
	sum := func(op string, a, b arm64.Reg) arm64.Reg {
		s := t.Vector()
		t.Op(op, s, a, b)
		return s
	}
	tmp2, tmp3 := t.times(v[2], 4433, v[6], -10704), t.times(v[2], 10703, v[6], 4433)
	tmp0, tmp1 := t.shifted(sum("add.8h", v[0], v[4]), n), t.shifted(sum("sub.8h", v[0], v[4]), n)
	var even, odd [4]sums
	even[0], even[3] = t.both(add32, tmp0, tmp3)
	even[1], even[2] = t.both(add32, tmp1, tmp2)

	s3, s4 := sum("add.8h", v[7], v[3]), sum("add.8h", v[5], v[1])
	// z4 is added to two of the sums, and z3 to the others: each begins with them
	z3, z4 := t.times(s3, -6436, s4, 9633), t.times(s3, 9633, s4, 6437)
	for i, z := range []sums{z4, z3, z4, z3} {
		for h := range z {
			odd[i][h] = t.Vector()
			t.Move(odd[i][h], z[h])
		}
	}
	t.addTimes(odd[0], v[7], -7373)
	t.addTimes(odd[0], v[1], 4926)
	t.addTimes(odd[1], v[5], -20995)
	t.addTimes(odd[1], v[3], 4177)
	t.addTimes(odd[2], v[5], -4176)
	t.addTimes(odd[2], v[3], -20995)
	t.addTimes(odd[3], v[7], -4927)
	t.addTimes(odd[3], v[1], -7373)

	out := make([]arm64.Reg, 8)
	for i := range even {
		plus, minus := t.both(add32, even[i], odd[i])
		out[i], out[7-i] = t.narrowed(plus, n), t.narrowed(minus, n)
	}
	return out
}

// shifted returns values of 16 bits times 2^13, and what rounds them.
func (t *transform) shifted(v arm64.Reg, n int) (s sums) {
	for h := range s {
		s[h] = t.Vector()
		t.OpImm([]string{"sshll.4s", "sshll2.4s"}[h], 13, s[h], v)
		t.Op("add.4s", s[h], s[h], t.round[n])
	}
	return s
}

// narrowed returns sums divided by a power of two, saturated to 16 bits.
func (t *transform) narrowed(s sums, n int) arm64.Reg {
	v := t.Vector()
	for h := range s {
		t.OpImm("sshr.4s", passShifts[n], s[h], s[h])
	}
	t.Op("sqxtn.4h", v, s[0])
	t.Op("sqxtn2.8h", v, s[1])
	return v
}

// transposed returns the columns of eight rows.
func (t *transform) transposed(v []arm64.Reg) []arm64.Reg {
	// Interleaving rows i and i+4 three times moves each bit of a row's number into that of a column.
	for range 3 {
		next := vectors(t.Func, 8)
		for i := range 4 {
			t.Op("zip1.8h", next[2*i], v[i], v[i+4])
			t.Op("zip2.8h", next[2*i+1], v[i], v[i+4])
		}
		v = next
	}
	return v
}
