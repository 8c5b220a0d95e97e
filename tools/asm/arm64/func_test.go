package arm64

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A value keeps its register as long as it is read, a copy needs none, and what nothing reads is not
// computed.
func TestText(t *testing.T) {
	f := NewFunc("sum", 24)
	p, n := f.General(), f.General()
	f.Set(p, "MOVD p+0(FP), R%d")
	f.Set(n, "MOVD n+8(FP), R%d")
	total, x, unused, copied := f.Vector(), f.Vector(), f.Vector(), f.Vector()
	f.OpImm("movi.16b", 0, total)
	f.Label("again")
	f.Advance("ldr.q+", 16, x, p)
	f.Op("fmul.4s", unused, x, x)
	f.Move(copied, x)
	f.Op("fadd.4s", total, total, copied)
	f.Flags(n, "SUBS $1, R%r, R%d", n)
	f.Jump("NE", "again")
	f.OpImm("str.q", 0, total, p)
	f.Return()
	got, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	want := `TEXT ·sum(SB), NOSPLIT, $0-24
	MOVD p+0(FP), R1
	MOVD n+8(FP), R0
	WORD $0x4f00e401 // movi v1.16b, #0x0

again:
	WORD $0x3cc10420 // ldr q0, [x1],#16
	WORD $0x4e20d421 // fadd v1.4s, v1.4s, v0.4s
	SUBS $1, R0, R0
	BNE again
	WORD $0x3d800021 // str q1, [x1]
	RET
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Two registers that a table needs get adjacent numbers, and what lives beside them others.
func TestAdjacent(t *testing.T) {
	f := NewFunc("table", 0)
	p := f.General()
	f.Set(p, "MOVD p+0(FP), R%d")
	var all []Reg
	for i := range 8 {
		v := f.Vector()
		f.OpImm("ldr.q", 16*i, v, p)
		all = append(all, v)
	}
	f.Adjacent(all[2], all[5])
	for _, v := range all {
		f.OpImm("str.q", 0, v, p)
	}
	f.Return()
	if _, err := f.Text(); err != nil {
		t.Fatal(err)
	}
	g := f.graph(vector)
	if !g.assign(f) || g.number[all[5].id] != (g.number[all[2].id]+1)%32 {
		t.Errorf("numbers %v, want that of %d behind that of %d", g.number, all[5].id, all[2].id)
	}
	used := map[int]bool{}
	for _, v := range all {
		used[g.number[v.id]] = true
	}
	if len(used) != len(all) {
		t.Errorf("%d registers for %d values that live together", len(used), len(all))
	}
}

// Errors name the function and what is wrong.
func TestFaults(t *testing.T) {
	for want, write := range map[string]func(f *Func){
		"no label nowhere":     func(f *Func) { f.Jump("", "nowhere") },
		"no instruction fnord": func(f *Func) { f.Op("fnord", f.Vector()) },
		"read before it is set": func(f *Func) {
			f.Op("fadd.4s", f.Vector(), f.Vector(), f.Vector())
			f.OpImm("str.q", 0, f.Vector(), f.General())
		},
		"40 registers of class 1 are needed at a time, 32 are available": func(f *Func) {
			p := f.General()
			f.Set(p, "MOVD p+0(FP), R%d")
			var all []Reg
			for i := range 40 {
				all = append(all, f.Vector())
				f.OpImm("ldr.q", 16*i, all[i], p)
			}
			for _, v := range all {
				f.OpImm("str.q", 0, v, p)
			}
		},
	} {
		f := NewFunc("bad", 0)
		write(f)
		f.Return()
		_, err := f.Text()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%v, want that %s", err, want)
		}
	}
}

// An instruction without a translation is an error that names it.
func TestNoTranslation(t *testing.T) {
	for want, write := range map[string]func(c *build.Context){
		"no translation of VADDSUBPS": func(c *build.Context) { c.VADDSUBPS(reg.Y0, reg.Y1, reg.Y2) },
		"no translation of predicate 0x11": func(c *build.Context) {
			c.VCMPPS(operand.U8(0x11), reg.Y0, reg.Y1, reg.Y2)
		},
		"no translation of BSWAPQ": func(c *build.Context) { c.BSWAPQ(c.GP64()) },
	} {
		c := build.NewContext()
		c.Function("badNEON")
		c.SignatureExpr("func()")
		write(c)
		c.RET()
		file, err := c.Result()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Translate(file.Functions()[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A number that fills a register needs one of arm64, and another vector two.
func TestUniform(t *testing.T) {
	c := build.NewContext()
	c.Function("scaleNEON")
	c.SignatureExpr("func(x *float32, a float32)")
	p, a, x := c.GP64(), c.YMM(), c.YMM()
	c.Load(c.Param("x"), p)
	at, err := c.Param("a").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	c.VBROADCASTSS(at.Addr, a)
	c.VMULPS(operand.Mem{Base: p}, a, x)
	c.VMOVUPS(x, operand.Mem{Base: p, Disp: 64})
	c.RET()
	file, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Translate(file.Functions()[0])
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{"dup v": 1, "ldp q": 1, "stp q": 1, "fmul v": 2, "mov v": 0} {
		if n := strings.Count(text, want); n != times {
			t.Error(fmt.Sprintf("%d times %q, want %d, in", n, want, times), text)
		}
	}
}
