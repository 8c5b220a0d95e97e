package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// march goes over rows in the order of memory. Sums of columns lie in the first cache and are added
// to in every row; where several matrices are read that costs less than to go down columns, for
// then memory is not read in its order. It asks the cache for what it will come to after ahead
// numbers.
type march struct {
	rows
	gap reg.GPVirtual // from the last vector of a row to the next row
	row operand.Mem   // the size of all vectors of a row

	prepare func(m *march)
	vector  func(m *march, masked bool) // does a vector
}

// function writes a march.
func (m *march) function(c *build.Context, s set, name, signature string, doc ...string) {
	m.code = code{asm: c, set: s}
	begin(c, name+s.name, "func("+shape+signature+")", doc...)
	m.row = c.AllocLocal(8)
	cols, tail := m.pointer("cols"), c.GP64()
	c.MOVQ(cols, tail)
	c.ANDQ(operand.U8(m.lanes-1), tail)
	m.lastMask(tail)
	size, end := cols, m.pointer("rows")
	c.ADDQ(operand.U8(m.lanes-1), size)
	c.ANDQ(operand.I8(-m.lanes), size)
	c.SHLQ(operand.U8(2), size)
	c.MOVQ(size, m.row)
	m.gap = m.bytes("stride")
	c.IMULQ(m.gap, end)
	c.SUBQ(size, m.gap)
	m.begins()
	whole := m.pointer("cols")
	c.ANDQ(operand.I8(-m.lanes), whole)
	c.SHLQ(operand.U8(2), whole)
	m.loadPointers()
	m.prepare(m)
	m.at, m.j = c.GP64(), c.GP64()
	c.XORQ(m.at, m.at)
	c.Label("row")
	c.XORQ(m.j, m.j)
	c.CMPQ(m.j, whole)
	c.JGE(operand.LabelRef("part"))
	c.Label("whole")
	m.step("vector", false)
	c.CMPQ(m.j, whole)
	c.JLT(operand.LabelRef("whole"))
	c.Label("part")
	c.CMPQ(m.j, m.row)
	c.JGE(operand.LabelRef("below"))
	m.step("partVector", true)
	c.Label("below")
	c.ADDQ(m.gap, m.at)
	c.CMPQ(m.at, end)
	c.JLT(operand.LabelRef("row"))
	c.VZEROUPPER()
	c.RET()
}

// begins goes ahead to the vector to ask for at first.
func (m *march) begins() {
	m.next, m.left = m.asm.GP64(), m.asm.GP64()
	m.asm.XORQ(m.next, m.next)
	m.asm.MOVQ(m.row, m.left)
	m.goAhead(m.further)
}

// further moves on what is asked for.
func (m *march) further(same string) {
	m.asm.ADDQ(m.size(), m.next)
	m.asm.SUBQ(m.size(), m.left)
	m.asm.JG(operand.LabelRef(same))
	m.asm.ADDQ(m.gap, m.next)
	m.asm.MOVQ(m.row, m.left)
	m.asm.Label(same)
}

// step does a vector and moves to the next.
func (m *march) step(name string, masked bool) {
	m.ask()
	m.further(name + "Same")
	m.vector(m, masked)
	m.asm.ADDQ(m.size(), m.at)
	m.asm.ADDQ(m.size(), m.j)
}

// sum is the place of half of the sums of the columns.
func (m *march) sum(name string, half int) operand.Mem {
	return operand.Mem{Base: m.pointers[name], Index: m.j, Scale: 2, Disp: half * m.lanes / 2 * sumSize}
}
