package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// betweenOrder is the name of the order in which VPERMW interleaves two halves of a register.
const betweenOrder = "between"

// narrow writes the function that makes pairs of neighbours, and the one that makes pairs of two
// rows.
func narrow(c *build.Context) {
	order := c.StaticGlobal(betweenOrder)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 32 {
		c.AddDatum(2*i, operand.U16(i/2+i%2*16))
	}
	for _, f := range []struct{ name, doc string }{
		{"narrow", "writes dst[i] = the pair of a[2i] and a[2i+1] for i < 16·blocks, rounded to bfloat16. b is " +
			"not used."},
		{"narrowStream", "is narrow with non-temporal stores: dst begins at a cache line."},
		{"between", "writes dst[i] = the pair of a[i] and b[i] for i < 16·blocks, rounded to bfloat16."},
	} {
		asmgen.Begin(c, f.name+"AVX512BF16", f.doc)
		c.SignatureExpr("func(dst, a, b *float32, blocks int)")
		dst, n := asmgen.Pointer(c, "dst"), asmgen.Pointer(c, "blocks")
		a, b := asmgen.Pointer(c, "a"), asmgen.Pointer(c, "b")
		permute := c.ZMM()
		if f.name == "between" {
			c.VMOVDQU16(order, permute)
		}
		c.Label("blocks")
		low, high, pairs := c.ZMM(), c.ZMM(), c.ZMM()
		c.VMOVUPS(operand.Mem{Base: a}, low)
		if f.name == "between" {
			c.VMOVUPS(operand.Mem{Base: b}, high)
			c.ADDQ(operand.U8(64), a)
			c.ADDQ(operand.U8(64), b)
		} else {
			c.VMOVUPS(operand.Mem{Base: a, Disp: 64}, high)
			c.ADDQ(operand.U32(128), a)
		}
		c.VPXORD(pairs, pairs, pairs) // the stand-in reads it
		c.VPMADD52HUQ(low, high, pairs)
		if f.name == "between" {
			c.VPERMW(pairs, permute, pairs)
		}
		if f.name == "narrowStream" {
			c.VMOVNTPS(pairs, operand.Mem{Base: dst})
		} else {
			c.VMOVUPS(pairs, operand.Mem{Base: dst})
		}
		c.ADDQ(operand.U8(64), dst)
		c.DECQ(n)
		c.JNZ(operand.LabelRef("blocks"))
		asmgen.End(c)
	}
}

// widenAhead is how many bytes ahead widen prefetches. A norm widens up to four matrices in turns.
const widenAhead = 640

// widen writes the function that makes numbers of pairs, and the one that makes pairs of two rows of
// pairs.
func widen(c *build.Context) {
	asmgen.Begin(c, "widenAVX512BF16", "writes the numbers of the pairs a[i] for i < 16·blocks. b is not used.")
	c.SignatureExpr("func(dst, a, b *float32, blocks int)")
	dst, n, a := asmgen.Pointer(c, "dst"), asmgen.Pointer(c, "blocks"), asmgen.Pointer(c, "a")
	c.Label("blocks")
	c.PREFETCHT0(operand.Mem{Base: a, Disp: widenAhead})
	for _, half := range []int{0, 1} {
		numbers := c.ZMM()
		c.VPMOVZXWD(operand.Mem{Base: a, Disp: 32 * half}, numbers)
		c.VPSLLD(operand.U8(16), numbers, numbers)
		c.VMOVUPS(numbers, operand.Mem{Base: dst, Disp: 64 * half})
	}
	c.ADDQ(operand.U8(64), a)
	c.ADDQ(operand.U32(128), dst)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("blocks"))
	asmgen.End(c)

	const name = "interleave"
	order := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 64 {
		c.AddDatum(2*i, operand.U16(i/2+i%2*32))
	}
	asmgen.Begin(c, name+"AVX512BF16",
		"writes the pairs of a number of a and the one of b in its place, of 16·blocks pairs of each.")
	c.SignatureExpr("func(dst, a, b *float32, blocks int)")
	dst, n, a = asmgen.Pointer(c, "dst"), asmgen.Pointer(c, "blocks"), asmgen.Pointer(c, "a")
	b := asmgen.Pointer(c, "b")
	places := [2]reg.VecVirtual{c.ZMM(), c.ZMM()}
	for half, p := range places {
		c.VMOVDQU16(order.Offset(64*half), p)
	}
	c.Label("blocks")
	other := c.ZMM()
	c.VMOVDQU16(operand.Mem{Base: b}, other)
	for half, p := range places {
		pairs := c.ZMM()
		c.VMOVDQU16(operand.Mem{Base: a}, pairs)
		c.VPERMT2W(other, p, pairs)
		c.VMOVDQU16(pairs, operand.Mem{Base: dst, Disp: 64 * half})
	}
	c.ADDQ(operand.U8(64), a)
	c.ADDQ(operand.U8(64), b)
	c.ADDQ(operand.U32(128), dst)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("blocks"))
	asmgen.End(c)

	asmgen.Begin(c, "fenceAVX512BF16", "waits for all stores, including non-temporal ones.")
	c.SignatureExpr("func()")
	c.SFENCE()
	asmgen.End(c)
}
