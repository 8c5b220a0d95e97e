package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"

	"fspda/tools/asm/arm64"
)

// neon is the instruction set of arm64: tiles of the same shapes as with AVX2, whose vectors of
// eight numbers are two registers.
var neon = set{name: "NEON", lanes: 8, rows: 6, vector: (*build.Context).YMM}

// neonTiles are the instructions of the micro-kernels by name.
func neonTiles() map[string]func(*arm64.Func) {
	all := map[string]func(*arm64.Func){}
	for rows := 1; rows <= neon.rows; rows++ {
		for vectors := 1; vectors <= maxVectors; vectors++ {
			all[neon.tileName(rows, vectors)] = func(f *arm64.Func) { neonTile(f, rows, vectors) }
		}
	}
	return all
}

// The processor multiplies a register by one number of another one, and loads four numbers at a time.
// What A looks like decides which loop does that best:
//
//   - column: the rows of a column of A are contiguous, as in a packed strip, so that one load or two
//     read a column;
//   - row: the columns of a row are contiguous, so that a load for each row reads four columns;
//   - apart: neither. A load fills a register with each number. This loop also adds what is left
//     behind the others.
//
// The first two exist for packed rows of B, which lie behind each other, and for any.

// packedRow is the distance of rows in a packed panel of B in bytes, and packedColumn that of
// columns in a packed strip of A.
const (
	packedRow    = 2 * 8 * 4
	packedColumn = 8 * 4
)

// neonTiler writes one micro-kernel for arm64.
type neonTiler struct {
	*arm64.Func
	tall, quads int // rows, and registers of four columns
	args        arm64.Reg
	acc         [][]arm64.Reg
	row         []arm64.Reg // pointers to the rows of A
	b           arm64.Reg   // pointer to the row of B
	bRow, aCol  arm64.Reg
	next        arm64.Reg // pointer to the line to prefetch
	step, twice arm64.Reg // its step, and two steps
}

// neonTile writes the micro-kernel for a tile of rows × vectors. See tile: the sums are the same.
func neonTile(f *arm64.Func, rows, vectors int) {
	t := &neonTiler{Func: f, tall: rows, quads: 2 * vectors, args: f.General()}
	f.Set(t.args, "MOVD args+0(FP), R%d")
	t.prefetchC()
	t.products()
	t.finish()
}

func (t *neonTiler) first() int { return (t.tall + 1) / 2 }

// get loads a field.
func (t *neonTiler) get(name string) arm64.Reg {
	r := t.General()
	t.Set(r, fmt.Sprintf("MOVD %d(R%%r), R%%d", offset(name)), t.args)
	return r
}

// plus returns the sum of two registers.
func (t *neonTiler) plus(a, b arm64.Reg) arm64.Reg {
	r := t.General()
	t.Set(r, "ADD R%r, R%r, R%d", a, b)
	return r
}

func (t *neonTiler) copied(a arm64.Reg) arm64.Reg {
	r := t.General()
	t.Move(r, a)
	return r
}

// increase adds a register, or a number, to another.
func (t *neonTiler) increase(r, by arm64.Reg) { t.Set(r, "ADD R%r, R%r, R%d", by, r) }
func (t *neonTiler) increaseBy(r arm64.Reg, by int) {
	t.Set(r, fmt.Sprintf("ADD $%d, R%%r, R%%d", by), r)
}

// prefetchC prefetches the lines of C, as tiler.prefetchC does.
func (t *neonTiler) prefetchC() {
	const short = 32
	t.Do("CMP $1, R%r", t.get("Runs"))
	t.Jump("NE", "prefetchC")
	t.Do(fmt.Sprintf("CMP $%d, R%%r", short), t.get("K"))
	t.Jump("LT", "prefetchedC")
	t.Label("prefetchC")
	t.eachRow(func(_ int, c arm64.Reg) { t.Do("PRFM (R%r), PLDL1KEEP", c) })
	t.Label("prefetchedC")
}

// eachRow calls do for each row of C, in both halves.
func (t *neonTiler) eachRow(do func(row int, c arm64.Reg)) {
	c, apart := t.get("C"), t.get("CRow")
	for i := range t.tall {
		switch i {
		case 0:
		case t.first():
			c = t.get("C2")
		default:
			c = t.plus(c, apart)
		}
		do(i, c)
	}
}

// products adds the products of all runs.
func (t *neonTiler) products() {
	a, a2 := t.get("A"), t.General()
	t.Move(a2, a)
	if t.tall > 1 {
		t.Set(a2, fmt.Sprintf("MOVD %d(R%%r), R%%d", offset("A2")), t.args)
	}
	aRow, k := t.get("ARow"), t.get("K")
	t.aCol, t.b, t.bRow = t.get("ACol"), t.get("B"), t.get("BRow")
	t.step = t.get("Step")
	t.twice = t.plus(t.step, t.step)
	t.next = t.plus(a, t.get("Ahead"))
	along := t.General() // from a run to the next in A
	t.Set(along, "MADD R%r, R%r, R%r, R%d", t.aCol, t.get("AJump"), k)
	t.acc = make([][]arm64.Reg, t.tall)
	for i := range t.acc {
		for range t.quads {
			v := t.Vector()
			t.OpImm("movi.16b", 0, v)
			t.acc[i] = append(t.acc[i], v)
		}
	}
	t.row = make([]arm64.Reg, t.tall)
	for i := range t.row {
		t.row[i] = t.General()
	}
	runs, groups, left := t.General(), t.get("Groups"), t.General()
	t.Label("group")
	t.Set(runs, fmt.Sprintf("MOVD %d(R%%r), R%%d", offset("Runs")), t.args)
	t.Label("run")
	t.Move(left, k)
	t.Move(t.row[0], a)
	t.choose(aRow, a, a2, left)
	t.increase(a, along)
	t.increase(a2, along)
	t.increase(t.b, t.get("BJump"))
	t.Flags(runs, "SUBS $1, R%r, R%d", runs)
	t.Jump("NE", "run")
	t.Flags(groups, "SUBS $1, R%r, R%d", groups)
	t.Jump("LE", "sums") // zero groups mean one
	gap := t.get("AGap")
	t.increase(a, gap)
	t.increase(a2, gap)
	t.increase(t.b, t.get("BGap"))
	t.Jump("", "group")
	t.Label("sums")
}

// choose adds the products of a run with the loops that fit A and B.
func (t *neonTiler) choose(aRow, a, a2, left arm64.Reg) {
	t.Do("CMP $4, R%r", t.aCol)
	t.Jump("EQ", "rows")
	t.Do("CMP $4, R%r", aRow)
	t.Jump("NE", "rows")
	if t.tall > 1 {
		behind := t.copied(a)
		t.increaseBy(behind, 4*t.first())
		t.Do("CMP R%r, R%r", behind, a2)
		t.Jump("NE", "rows")
	}
	// column: the first pointer is that of the column
	t.Do(fmt.Sprintf("CMP $%d, R%%r", packedColumn), t.aCol)
	t.Jump("NE", "columnsOfAnyB")
	t.Do(fmt.Sprintf("CMP $%d, R%%r", packedRow), t.bRow)
	t.Jump("NE", "columnsOfAnyB")
	t.loop("packed", 8, 1, left, func() { t.column(true) })
	t.Jump("", "columnsLeft")
	t.Label("columnsOfAnyB")
	t.loop("columns", 4, 1, left, func() { t.column(false) })
	t.Label("columnsLeft")
	t.JumpZero(left, "added")
	for i := 1; i < t.tall; i++ {
		t.Set(t.row[i], fmt.Sprintf("ADD $%d, R%%r, R%%d", 4*i), t.row[0])
	}
	t.Jump("", "apart")

	t.Label("rows")
	for i := 1; i < t.tall; i++ {
		if i == t.first() {
			t.Move(t.row[i], a2)
		} else {
			t.Set(t.row[i], "ADD R%r, R%r, R%d", aRow, t.row[i-1])
		}
	}
	t.Do("CMP $4, R%r", t.aCol)
	t.Jump("NE", "apart")
	t.Do(fmt.Sprintf("CMP $%d, R%%r", packedRow), t.bRow)
	t.Jump("NE", "rowsOfAnyB")
	t.loop("rowsPacked", 8, 4, left, func() { t.fourColumns(true) })
	t.Jump("", "rowsLeft")
	t.Label("rowsOfAnyB")
	t.loop("rowsAny", 4, 4, left, func() { t.fourColumns(false) })
	t.Label("rowsLeft")
	t.JumpZero(left, "added")

	t.Label("apart")
	t.prefetchA(1)
	t.separate()
	t.Flags(left, "SUBS $1, R%r, R%d", left)
	t.Jump("NE", "apart")
	t.Label("added")
}

// loop adds so many products at a time, each of them some at once, and leaves the rest.
func (t *neonTiler) loop(name string, products, each int, left arm64.Reg, body func()) {
	t.Flags(left, fmt.Sprintf("SUBS $%d, R%%r, R%%d", products), left)
	t.Jump("LT", name+"End")
	t.Label(name)
	t.prefetchA(products)
	for range products / each {
		body()
	}
	t.Flags(left, fmt.Sprintf("SUBS $%d, R%%r, R%%d", products), left)
	t.Jump("GE", name)
	t.Label(name + "End")
	t.increaseBy(left, products)
}

// prefetchA prefetches lines of the next strip of A: one for every second product, or one for one.
// Strips are too short, and too many next to each other, for the hardware prefetcher.
func (t *neonTiler) prefetchA(products int) {
	if products == 1 {
		t.Do("PRFM (R%r), PLDL1KEEP", t.next)
		t.increase(t.next, t.step)
		return
	}
	for range products / 4 {
		t.Do("PRFM (R%r), PLDL1KEEP", t.next)
		t.Prefetch(t.next, t.twice)
		t.Set(t.next, "ADD R%r<<2, R%r, R%d", t.step, t.next)
	}
}

// loadB calls use for the registers of a row of B, two at a time, and moves to the next row. Of four
// registers the last two come first, since a load that advances the pointer reads where it was.
func (t *neonTiler) loadB(packed bool, use func(quad int, b arm64.Reg)) {
	for q := t.quads - 2; q >= 0; q -= 2 {
		low, high := t.Vector(), t.Vector()
		if q == 0 && packed {
			t.OpPair("ldp.q+", packedRow, low, high, t.b)
		} else {
			t.OpPair("ldp.q", 16*q, low, high, t.b)
		}
		use(q, low)
		use(q+1, high)
	}
	if !packed {
		t.increase(t.b, t.bRow)
	}
}

// column adds the products of a column of A, whose numbers are contiguous. In a packed strip there
// are eight, so that more than the rows may be read.
func (t *neonTiler) column(packed bool) {
	a := []arm64.Reg{t.Vector(), t.Vector()}
	at := t.row[0]
	var lanes []int // of each number: the register, times four, and its place
	for i := range t.tall {
		lanes = append(lanes, i)
	}
	switch {
	case packed && t.tall <= 4:
		t.Advance("ldr.q+", packedColumn, a[0], at)
	case packed:
		t.OpPair("ldp.q+", packedColumn, a[0], a[1], at)
	default:
		sizes := map[int][]string{1: {"s"}, 2: {"d"}, 3: {"d", "s"}, 4: {"q"}, 5: {"q", "s"}, 6: {"q", "d"}}[t.tall]
		off := 0
		for i, size := range sizes {
			t.OpImm("ldr."+size, off, a[i], at)
			off += map[string]int{"s": 4, "d": 8, "q": 16}[size]
		}
		if t.tall == 3 {
			lanes[2] = 4
		}
		t.increase(at, t.aCol)
	}
	t.loadB(packed, func(q int, b arm64.Reg) {
		for i, l := range lanes {
			t.OpImm("fmla.s", l%4, t.acc[i][q], b, a[l/4])
		}
	})
}

// fourColumns adds the products of four columns of A, whose rows are contiguous.
func (t *neonTiler) fourColumns(packed bool) {
	a := make([]arm64.Reg, t.tall)
	for i, at := range t.row {
		a[i] = t.Vector()
		t.Advance("ldr.q+", 16, a[i], at)
	}
	for p := range 4 {
		t.loadB(packed, func(q int, b arm64.Reg) {
			for i := range a {
				t.OpImm("fmla.s", p, t.acc[i][q], b, a[i])
			}
		})
	}
}

// separate adds the products of one column of A, number by number.
func (t *neonTiler) separate() {
	row := make([]arm64.Reg, t.quads)
	t.loadB(false, func(q int, b arm64.Reg) { row[q] = b })
	for i, at := range t.row {
		x := t.Vector()
		t.Advance("ld1r.4s+", 0, x, at, t.aCol)
		for q, b := range row {
			t.Op("fmla.4s", t.acc[i][q], b, x)
		}
	}
}

// finish writes C = alpha·acc + beta·C, as tiler.finish does.
func (t *neonTiler) finish() {
	alpha, beta, last, bits := t.Vector(), t.Vector(), t.get("Last"), t.General()
	t.fill(alpha, "Alpha")
	t.Set(bits, fmt.Sprintf("MOVWU %d(R%%r), R%%d", offset("Beta")), t.args)
	t.Flags(bits, "ADDSW R%r, R%r, R%d", bits, bits) // without its sign
	t.Jump("EQ", "overwrite")
	t.fill(beta, "Beta")
	apart := t.get("Old")
	t.write("add", last, func(size string, acc, c arm64.Reg, off int) {
		old := t.Vector()
		t.OpImm("ldr."+size, off, old, t.plus(c, apart))
		t.Op("fmul.4s", old, old, beta)
		t.Op("fmla.4s", old, acc, alpha)
		t.OpImm("str."+size, off, old, c)
	})
	t.Label("overwrite")
	t.write("set", last, func(size string, acc, c arm64.Reg, off int) {
		x := t.Vector()
		t.Op("fmul.4s", x, acc, alpha)
		t.OpImm("str."+size, off, x, c)
	})
}

// fill fills a register with a field.
func (t *neonTiler) fill(v arm64.Reg, name string) {
	at := t.General()
	t.Set(at, fmt.Sprintf("ADD $%d, R%%r, R%%d", offset(name)), t.args)
	t.Op("ld1r.4s", v, at)
}

// write writes all rows of C, and returns. one writes numbers of a register: four, two or one.
func (t *neonTiler) write(name string, last arm64.Reg, one func(size string, acc, c arm64.Reg, off int)) {
	t.Do("CMP $8, R%r", last)
	t.Jump("NE", name+"Part")
	t.eachRow(func(row int, c arm64.Reg) {
		for q, acc := range t.acc[row] {
			one("q", acc, c, 16*q)
		}
	})
	t.Return()
	t.Label(name + "Part")
	t.eachRow(func(row int, c arm64.Reg) {
		whole := t.quads - 2
		for q, acc := range t.acc[row][:whole] {
			one("q", acc, c, 16*q)
		}
		at, x := t.General(), t.Vector()
		t.Set(at, fmt.Sprintf("ADD $%d, R%%r, R%%d", 16*whole), c)
		t.Move(x, t.acc[row][whole])
		label := func(n int) string { return fmt.Sprintf("%sRow%dBelow%d", name, row, n) }
		t.JumpBit(2, last, label(4))
		one("q", x, at, 0)
		t.increaseBy(at, 16)
		t.Move(x, t.acc[row][whole+1])
		t.Label(label(4))
		t.JumpBit(1, last, label(2))
		one("d", x, at, 0)
		t.increaseBy(at, 8)
		t.OpImm("ext.16b", 8, x, x, x)
		t.Label(label(2))
		t.JumpBit(0, last, label(1))
		one("s", x, at, 0)
		t.Label(label(1))
	})
	t.Return()
}
