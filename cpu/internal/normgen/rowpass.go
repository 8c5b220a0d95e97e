package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowPass goes over rows in memory order. Sums of columns are in the first-level cache and are
// added to in every row; if several matrices are read, that costs less than going down columns,
// which does not read memory in its order. It prefetches so many numbers ahead.
type rowPass struct {
	rows
	gap reg.GPVirtual // from the last vector of a row to the next row
	row operand.Mem   // the size of all vectors of a row

	prepare func(m *rowPass)
	vector  func(m *rowPass, masked bool) // computes a vector
}

// function writes a row pass.
func (m *rowPass) function(c *build.Context, s set, name, signature string, doc ...string) {
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
	m.startPrefetch()
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

// startPrefetch moves to the first vector to prefetch.
func (m *rowPass) startPrefetch() {
	m.next, m.left = m.asm.GP64(), m.asm.GP64()
	m.asm.XORQ(m.next, m.next)
	m.asm.MOVQ(m.row, m.left)
	m.startPrefetchAt(m.advancePrefetch)
}

// advancePrefetch moves to the next vector to prefetch.
func (m *rowPass) advancePrefetch(same string) {
	m.asm.ADDQ(m.size(), m.next)
	m.asm.SUBQ(m.size(), m.left)
	m.asm.JG(operand.LabelRef(same))
	m.asm.ADDQ(m.gap, m.next)
	m.asm.MOVQ(m.row, m.left)
	m.asm.Label(same)
}

// step computes a vector and moves to the next.
func (m *rowPass) step(name string, masked bool) {
	m.prefetch()
	m.advancePrefetch(name + "Same")
	m.vector(m, masked)
	m.asm.ADDQ(m.size(), m.at)
	m.asm.ADDQ(m.size(), m.j)
}

// sum returns the operand of half of the sums of the columns.
func (m *rowPass) sum(name string, half int) operand.Mem {
	return operand.Mem{Base: m.pointers[name], Index: m.j, Scale: 2, Disp: half * m.lanes / 2 * sumSize}
}
