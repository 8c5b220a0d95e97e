package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// set is an instruction set: how many numbers a vector holds, and how high a tile may be so that its accumulators, a row
// of B and two numbers of A fit into the registers.
type set struct {
	name   string
	lanes  int
	rows   int
	masked bool // loads of part of a vector cost nothing
	vector func(*build.Context) reg.VecVirtual
	clear  func(c *build.Context, v reg.Register)
}

// maxVectors is the width of the widest tile in vectors.
const maxVectors = 2

var sets = []set{
	{"AVX512", 16, 14, true, (*build.Context).ZMM, func(c *build.Context, v reg.Register) { c.VPXORD(v, v, v) }},
	{"AVX2", 8, 6, false, (*build.Context).YMM, func(c *build.Context, v reg.Register) { c.VXORPS(v, v, v) }},
}

// group is how many rows of A share a pointer: the addressing modes reach rows 0, 1 and 2 of it.
const group = 3

// tiler writes one micro-kernel.
type tiler struct {
	*build.Context
	set
	tall, wide int
	acc        [][]reg.VecVirtual // [row][vector]
	mask       reg.Register       // of the last vector of a row
}

// tile writes the micro-kernel of a tile of rows × vectors. Its loop is the definition of a product: every accumulator takes
// its k products in ascending order, one fused multiply-add each, beginning with +0.
func tile(c *build.Context, s set, rows, vectors int) {
	name := fmt.Sprintf("tile%dx%d%s", rows, vectors*s.lanes, s.name)
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr("func(k int, a *float32, ars, acs int, b *float32, brs int, c *float32, ldc int, alpha, beta float32, last, ahead, step int)")
	c.Pragma("noescape")
	c.Doc(fmt.Sprintf("%s computes C = alpha·A·B + beta·C for %d rows and %d vectors of %d columns, the last vector with last columns.",
		name, rows, vectors, s.lanes))
	t := &tiler{Context: c, set: s, tall: rows, wide: vectors}
	t.lastMask()
	t.touch()
	t.products()
	t.finish()
	c.VZEROUPPER()
	c.RET()
}

// stride loads a parameter that counts numbers and returns it in bytes.
func (t *tiler) stride(name string) reg.GPVirtual {
	r := t.GP64()
	t.Load(t.Param(name), r)
	t.SHLQ(operand.U8(2), r)
	return r
}

func (t *tiler) pointer(name string) reg.GPVirtual {
	r := t.GP64()
	t.Load(t.Param(name), r)
	return r
}

// lastMask makes the mask of the first `last` columns: a mask register, or a vector whose signs say so.
func (t *tiler) lastMask() {
	last := t.pointer("last")
	if t.masked {
		t.MOVQ(last, reg.RCX)
		bits := t.GP32()
		t.MOVL(operand.U32(1), bits)
		t.SHLL(reg.CL, bits)
		t.DECL(bits)
		k := t.K()
		t.KMOVW(bits, k)
		t.mask = k
		return
	}
	// Eight numbers out of a row of ones and zeros, the window moved to where `last` ones are left. It is loaded when needed,
	// for there are no registers to keep it in.
	t.NEGQ(last)
	t.mask = last
}

// touch asks for the lines of C, so that they are there when the products are done. In a short loop they would not be, and
// asking is not free.
func (t *tiler) touch() {
	const short = 32
	t.CMPQ(t.address("k"), operand.U8(short))
	t.JLT(operand.LabelRef("touched"))
	c, ldc := t.pointer("c"), t.stride("ldc")
	for i := range t.tall {
		for v := range t.wide {
			if v*t.lanes*4%64 == 0 {
				t.PREFETCHT0(operand.Mem{Base: c, Disp: v * t.lanes * 4})
			}
		}
		if i < t.tall-1 {
			t.ADDQ(ldc, c)
		}
	}
	t.Label("touched")
}

// products adds up the products of all k. Each step also prefetches a line of the next strip of A: strips are too short, and too many
// side by side, for the processor to see where they lead.
func (t *tiler) products() {
	k, b, brs := t.pointer("k"), t.pointer("b"), t.stride("brs")
	ars, acs := t.stride("ars"), t.stride("acs")
	a := []reg.GPVirtual{t.pointer("a")}
	for len(a)*group < t.tall {
		next := t.GP64()
		t.LEAQ(operand.Mem{Base: a[len(a)-1], Index: ars, Scale: 2}, next)
		t.ADDQ(ars, next)
		a = append(a, next)
	}
	next, step := t.stride("ahead"), t.stride("step")
	t.ADDQ(a[0], next)
	t.acc = make([][]reg.VecVirtual, t.tall)
	for i := range t.acc {
		for range t.wide {
			v := t.vector(t.Context)
			t.clear(t.Context, v)
			t.acc[i] = append(t.acc[i], v)
		}
	}
	t.Label("products")
	t.PREFETCHT0(operand.Mem{Base: next})
	t.ADDQ(step, next)
	row := make([]reg.VecVirtual, t.wide)
	for v := range row {
		row[v] = t.vector(t.Context)
		from := operand.Mem{Base: b, Disp: v * t.lanes * 4}
		if t.masked && v == t.wide-1 {
			t.VMOVUPS_Z(from, t.mask, row[v])
		} else {
			t.VMOVUPS(from, row[v])
		}
	}
	for i, accs := range t.acc {
		from := operand.Mem{Base: a[i/group]}
		if r := i % group; r > 0 {
			from.Index, from.Scale = ars, uint8(r)
		}
		x := t.vector(t.Context)
		t.VBROADCASTSS(from, x)
		for v, acc := range accs {
			t.VFMADD231PS(row[v], x, acc)
		}
	}
	for _, p := range append(a, b) {
		if p == b {
			t.ADDQ(brs, p)
		} else {
			t.ADDQ(acs, p)
		}
	}
	t.DECQ(k)
	t.JNZ(operand.LabelRef("products"))
}

// finish writes C = alpha·acc + beta·C: the product with beta is rounded, the one with alpha is fused. Where beta is zero C is not
// read, so that what it held cannot matter.
func (t *tiler) finish() {
	c, ldc := t.pointer("c"), t.stride("ldc")
	alpha, beta := t.vector(t.Context), t.vector(t.Context)
	t.VBROADCASTSS(t.address("alpha"), alpha)
	t.VBROADCASTSS(t.address("beta"), beta)
	if !t.masked { // the accumulators leave 16 − 12 − 2 registers: one for the mask, one for what is loaded
		t.loadMask()
	}
	bits := t.GP32()
	t.MOVL(t.address("beta"), bits)
	t.ADDL(bits, bits) // without its sign
	t.JZ(operand.LabelRef("overwrite"))
	t.eachRow(c, ldc, func(acc reg.VecVirtual, at operand.Mem, last bool) {
		old := t.vector(t.Context)
		t.load(at, old, last)
		t.VMULPS(beta, old, old)
		t.VFMADD231PS(alpha, acc, old)
		t.store(old, at, last)
	})
	t.VZEROUPPER()
	t.RET()
	t.Label("overwrite")
	t.eachRow(c, ldc, func(acc reg.VecVirtual, at operand.Mem, last bool) {
		t.VMULPS(alpha, acc, acc)
		t.store(acc, at, last)
	})
}

// address is where a parameter lies.
func (t *tiler) address(name string) operand.Mem {
	p, err := t.Param(name).Resolve()
	if err != nil {
		panic("gemmgen: " + err.Error())
	}
	return p.Addr
}

func (t *tiler) eachRow(c, ldc reg.GPVirtual, do func(acc reg.VecVirtual, at operand.Mem, last bool)) {
	for i, accs := range t.acc {
		for v, acc := range accs {
			do(acc, operand.Mem{Base: c, Disp: v * t.lanes * 4}, v == t.wide-1)
		}
		if i < t.tall-1 {
			t.ADDQ(ldc, c)
		}
	}
}

// maskTable is the name of the masks of AVX2: a vector of ones followed by one of zeros.
const maskTable = "lanesAVX2"

func masks(c *build.Context, lanes int) {
	c.StaticGlobal(maskTable)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 2 * lanes {
		ones := operand.U32(0)
		if i < lanes {
			ones = 0xffffffff
		}
		c.AddDatum(i*4, ones)
	}
}

// loadMask turns the number of columns, negated, into a vector.
func (t *tiler) loadMask() {
	at, mask := t.GP64(), t.YMM()
	t.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(maskTable), t.lanes*4), at)
	t.VMOVUPS(operand.Mem{Base: at, Index: t.mask, Scale: 4}, mask)
	t.mask = mask
}

func (t *tiler) load(from operand.Mem, v reg.VecVirtual, last bool) {
	switch {
	case !last:
		t.VMOVUPS(from, v)
	case t.masked:
		t.VMOVUPS_Z(from, t.mask, v)
	default:
		t.VMASKMOVPS(from, t.mask, v)
	}
}

func (t *tiler) store(v reg.VecVirtual, to operand.Mem, last bool) {
	switch {
	case !last:
		t.VMOVUPS(v, to)
	case t.masked:
		t.VMOVUPS(v, t.mask, to)
	default:
		t.VMASKMOVPS(v, t.mask, to)
	}
}
