package main

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// set is an instruction set: the number of float32 in a vector, and the largest height of a tile
// whose accumulators, a row of B and two numbers of A fit into the registers.
type set struct {
	name   string
	lanes  int
	rows   int
	masked bool // loading part of a vector costs nothing, and a multiply-add can broadcast a number from memory
	pairs  bool // a number of A and B is a pair of bfloat16 numbers
	vector func(*build.Context) reg.VecVirtual
	clear  func(c *build.Context, v reg.Register)
}

// maxVectors is the width of the widest tile in vectors.
const maxVectors = 2

var sets = []set{
	{"AVX512", 16, 14, true, false, (*build.Context).ZMM, clear512},
	{"AVX2", 8, 6, false, false, (*build.Context).YMM, func(c *build.Context, v reg.Register) { c.VXORPS(v, v, v) }},
	{"AVX512BF16", 16, 14, true, true, (*build.Context).ZMM, clear512},
}

func clear512(c *build.Context, v reg.Register) { c.VPXORD(v, v, v) }

// args are the fields of tile.Args in their order; TestArgs compares the two. Each has eight bytes,
// but Alpha and Beta have four.
var args = []string{"A", "A2", "ARow", "ACol", "B", "BRow", "K", "Runs", "Groups", "AJump", "BJump", "AGap", "BGap",
	"C", "C2", "CRow", "Last", "Ahead", "Step", "Alpha", "Beta", "Old"}

// offset returns the offset of a field.
func offset(name string) int {
	i := slices.Index(args, name)
	if i < 0 {
		panic("tilegen: no field " + name)
	}
	switch name {
	case "Beta":
		return 8*i - 4
	case "Old":
		return 8 * (i - 1)
	}
	return 8 * i
}

// takesArgs returns the signature func(args *Args).
func takesArgs() *gotypes.Signature {
	pkg := types.NewPackage("tile", "tile")
	name := types.NewTypeName(token.NoPos, pkg, "Args", nil)
	t := types.NewNamed(name, types.NewStruct(nil, nil), nil)
	p := types.NewParam(token.NoPos, pkg, "args", types.NewPointer(t))
	return gotypes.NewSignature(pkg, types.NewSignatureType(nil, nil, nil, types.NewTuple(p), nil, false))
}

// tiler writes one micro-kernel.
type tiler struct {
	asm *build.Context // not embedded: wrapping each of its thousands of methods takes long to compile
	set
	tall, wide int
	args       reg.GPVirtual
	acc        [][]reg.VecVirtual // [row][vector]
	mask       reg.Register       // of the last vector of a row
}

// tile writes the micro-kernel for a tile of rows × vectors. Its loop is the definition of a
// product: every accumulator takes its products in ascending order, one fused multiply-add each,
// beginning with +0.
func tile(c *build.Context, s set, rows, vectors int) {
	declare(c, s, rows, vectors)
	t := &tiler{asm: c, set: s, tall: rows, wide: vectors, args: c.GP64()}
	c.Load(c.Param("args"), t.args)
	t.lastMask()
	t.prefetchC()
	t.products()
	t.finish()
	asmgen.End(c)
}

// tileName returns the name of a micro-kernel.
func (s set) tileName(rows, vectors int) string {
	return fmt.Sprintf("tile%dx%d%s", rows, vectors*s.lanes, s.name)
}

// declare begins the function of a micro-kernel.
func declare(c *build.Context, s set, rows, vectors int) {
	asmgen.Begin(c, s.tileName(rows, vectors), fmt.Sprintf("computes C = alpha·A·B + beta·C for %d rows and %d "+
		"vectors of %d columns, the last vector with last columns.", rows, vectors, s.lanes))
	c.Signature(takesArgs())
}

// first returns the number of rows of the first half of a tile. The rows of each half are equally
// far apart; a half may lie anywhere.
func (t *tiler) first() int { return (t.tall + 1) / 2 }

// field returns the operand of a field.
func (t *tiler) field(name string) operand.Mem { return operand.Mem{Base: t.args, Disp: offset(name)} }

// get loads a field.
func (t *tiler) get(name string) reg.GPVirtual {
	r := t.asm.GP64()
	t.asm.MOVQ(t.field(name), r)
	return r
}

// lastMask loads the mask of the first `last` columns into a mask register, if the set has them.
func (t *tiler) lastMask() {
	if !t.masked {
		return
	}
	t.asm.MOVQ(t.field("Last"), reg.RCX)
	bits, k := t.asm.GP32(), t.asm.K()
	t.asm.MOVL(operand.U32(1), bits)
	t.asm.SHLL(reg.CL, bits)
	t.asm.DECL(bits)
	t.asm.KMOVW(bits, k)
	t.mask = k
}

// prefetchC prefetches the lines of C, so that they have arrived when the products are done. In a
// short loop they would not arrive in time, and the prefetch is not free.
func (t *tiler) prefetchC() {
	const short = 32
	t.asm.CMPQ(t.field("Runs"), operand.U8(1))
	t.asm.JNE(operand.LabelRef("prefetchC"))
	t.asm.CMPQ(t.field("K"), operand.U8(short))
	t.asm.JLT(operand.LabelRef("prefetchedC"))
	t.asm.Label("prefetchC")
	t.eachRow(func(row int, c reg.GPVirtual) {
		for v := range t.wide {
			if v*t.lanes*4%64 == 0 {
				t.asm.PREFETCHT0(operand.Mem{Base: c, Disp: v * t.lanes * 4})
			}
		}
	})
	t.asm.Label("prefetchedC")
}

// rows returns the operands of A of each row. One pointer reaches seven rows of a half, since an
// address is a base plus a stride times 1, 2, 4 or 8.
func (t *tiler) rows(half1, half2 reg.GPVirtual) []operand.Mem {
	one, three, five := t.get("ARow"), t.asm.GP64(), t.asm.GP64()
	t.asm.LEAQ(operand.Mem{Base: one, Index: one, Scale: 2}, three)
	t.asm.LEAQ(operand.Mem{Base: one, Index: one, Scale: 4}, five)
	reach := []operand.Mem{{}, {Index: one, Scale: 1}, {Index: one, Scale: 2}, {Index: three, Scale: 1},
		{Index: one, Scale: 4}, {Index: five, Scale: 1}, {Index: three, Scale: 2}}
	all := make([]operand.Mem, t.tall)
	for i := range all {
		if i < t.first() {
			all[i] = reach[i]
			all[i].Base = half1
		} else {
			all[i] = reach[i-t.first()]
			all[i].Base = half2
		}
	}
	return all
}

// products adds the products of all runs. Each step also prefetches a line of the next strip of A:
// strips are too short, and too many next to each other, for the hardware prefetcher.
func (t *tiler) products() {
	b, brs, acs := t.get("B"), t.get("BRow"), t.get("ACol")
	a := []reg.GPVirtual{t.get("A"), t.get("A2")}
	rows := t.rows(a[0], a[1])
	a = a[:min(2, t.tall)]
	next, step := t.get("Ahead"), t.get("Step")
	t.asm.ADDQ(a[0], next)
	t.clearAll()
	k, runs, groups := t.asm.GP64(), t.asm.GP64(), t.get("Groups")
	t.asm.Label("group")
	t.asm.MOVQ(t.field("Runs"), runs)
	t.asm.Label("run")
	t.asm.MOVQ(t.field("K"), k)
	t.asm.Label("products")
	t.asm.PREFETCHT0(operand.Mem{Base: next})
	t.asm.ADDQ(step, next)
	row := make([]reg.VecVirtual, t.wide)
	for v := range row {
		row[v] = t.vector(t.asm)
		from := operand.Mem{Base: b, Disp: v * t.lanes * 4}
		if t.masked && v == t.wide-1 {
			t.asm.VMOVUPS_Z(from, t.mask, row[v])
		} else {
			t.asm.VMOVUPS(from, row[v])
		}
	}
	for i := range t.acc {
		t.addRow(i, rows[i], row)
	}
	t.asm.ADDQ(brs, b)
	for _, p := range a {
		t.asm.ADDQ(acs, p)
	}
	t.asm.DECQ(k)
	t.asm.JNZ(operand.LabelRef("products"))
	t.asm.ADDQ(t.field("BJump"), b)
	for _, p := range a {
		t.asm.ADDQ(t.field("AJump"), p)
	}
	t.asm.DECQ(runs)
	t.asm.JNZ(operand.LabelRef("run"))
	t.asm.DECQ(groups)
	t.asm.JLE(operand.LabelRef("sums")) // zero groups mean one
	t.asm.ADDQ(t.field("BGap"), b)
	for _, p := range a {
		t.asm.ADDQ(t.field("AGap"), p)
	}
	t.asm.JMP(operand.LabelRef("group"))
	t.asm.Label("sums")
}

// addRow adds a number of A times a row of B to a row of accumulators. A tile of one vector uses
// each number once: there a multiply-add with a broadcast operand takes a cycle on Zen 4, and one
// after a separate broadcast 1.4.
func (t *tiler) addRow(i int, a operand.Mem, row []reg.VecVirtual) {
	if t.masked && t.wide == 1 && !t.pairs {
		t.asm.VFMADD231PS_BCST(a, row[0], t.acc[i][0])
		return
	}
	x := t.vector(t.asm)
	t.asm.VBROADCASTSS(a, x)
	for v, acc := range t.acc[i] {
		if t.pairs {
			t.asm.VPMADD52LUQ(row[v], x, acc) // VDPBF16PS, see pairs.go
		} else {
			t.asm.VFMADD231PS(row[v], x, acc)
		}
	}
}

// clearAll creates the accumulators and sets them to zero.
func (t *tiler) clearAll() {
	t.acc = make([][]reg.VecVirtual, t.tall)
	for i := range t.acc {
		for range t.wide {
			v := t.vector(t.asm)
			t.clear(t.asm, v)
			t.acc[i] = append(t.acc[i], v)
		}
	}
}

// finish writes C = alpha·acc + beta·C, where C may be read elsewhere: the product with beta is
// rounded, the one with alpha is fused. If beta is zero C is not read, so that its old contents do
// not matter. A masked store of
// AVX2 takes as long as ten products on some processors, so that rows of whole vectors avoid it.
func (t *tiler) finish() {
	alpha, beta := t.vector(t.asm), t.vector(t.asm)
	t.asm.VBROADCASTSS(t.field("Alpha"), alpha)
	t.asm.VBROADCASTSS(t.field("Beta"), beta)
	if !t.masked {
		t.asm.CMPQ(t.field("Last"), operand.U8(t.lanes))
		t.asm.JNE(operand.LabelRef("part"))
		t.write("whole", alpha, beta)
		t.asm.VZEROUPPER()
		t.asm.RET()
		t.asm.Label("part")
		// the accumulators leave 16 − 12 − 2 registers: one for the mask, one for loads
		t.loadMask()
	}
	t.write("part", alpha, beta)
}

// write is finish for rows of whole vectors, or whose last vector is a part.
func (t *tiler) write(rows string, alpha, beta reg.VecVirtual) {
	overwrite, part := rows+"_overwrite", rows == "part"
	bits := t.asm.GP32()
	t.asm.MOVL(t.field("Beta"), bits)
	t.asm.ADDL(bits, bits) // without its sign
	t.asm.JZ(operand.LabelRef(overwrite))
	apart := t.get("Old")
	t.eachVector(func(acc reg.VecVirtual, at operand.Mem, last bool) {
		old := t.vector(t.asm)
		t.load(at.Idx(apart, 1), old, last && part)
		t.asm.VMULPS(beta, old, old)
		t.asm.VFMADD231PS(alpha, acc, old)
		t.store(old, at, last && part)
	})
	t.asm.VZEROUPPER()
	t.asm.RET()
	t.asm.Label(overwrite)
	t.eachVector(func(acc reg.VecVirtual, at operand.Mem, last bool) {
		t.asm.VMULPS(alpha, acc, acc)
		t.store(acc, at, last && part)
	})
}

// eachRow calls do for each row of C, in both halves.
func (t *tiler) eachRow(do func(row int, c reg.GPVirtual)) {
	c, ldc := t.get("C"), t.get("CRow")
	for i := range t.tall {
		switch i {
		case 0:
		case t.first():
			t.asm.MOVQ(t.field("C2"), c)
		default:
			t.asm.ADDQ(ldc, c)
		}
		do(i, c)
	}
}

// eachVector calls do for each vector of C.
func (t *tiler) eachVector(do func(acc reg.VecVirtual, at operand.Mem, last bool)) {
	t.eachRow(func(row int, c reg.GPVirtual) {
		for v, acc := range t.acc[row] {
			do(acc, operand.Mem{Base: c, Disp: v * t.lanes * 4}, v == t.wide-1)
		}
	})
}

// maskTable is the name of the masks of AVX2: a vector of ones followed by one of zeros.
const maskTable = "lanesAVX2"

// loadMask loads the mask of AVX2, a vector whose signs select: eight numbers of maskTable,
// beginning so that `last` ones are left. It is loaded when needed, since no register is free
// during the products.
func (t *tiler) loadMask() {
	at, last, mask := t.asm.GP64(), t.get("Last"), t.asm.YMM()
	t.asm.NEGQ(last)
	t.asm.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(maskTable), t.lanes*4), at)
	t.asm.VMOVUPS(operand.Mem{Base: at, Index: last, Scale: 4}, mask)
	t.mask = mask
}

func (t *tiler) load(from operand.Mem, v reg.VecVirtual, last bool) {
	switch {
	case !last:
		t.asm.VMOVUPS(from, v)
	case t.masked:
		t.asm.VMOVUPS_Z(from, t.mask, v)
	default:
		t.asm.VMASKMOVPS(from, t.mask, v)
	}
}

func (t *tiler) store(v reg.VecVirtual, to operand.Mem, last bool) {
	switch {
	case !last:
		t.asm.VMOVUPS(v, to)
	case t.masked:
		t.asm.VMOVUPS(v, t.mask, to)
	default:
		t.asm.VMASKMOVPS(v, t.mask, to)
	}
}
