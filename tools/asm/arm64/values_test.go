package arm64

import (
	"strings"
	"testing"
)

// A register that is set again is another one where nothing reads the old value, so that a copy into
// it costs nothing; one that a loop adds to stays the same.
func TestSplit(t *testing.T) {
	f := NewFunc("split", 16)
	p, n := f.General(), f.General()
	f.Set(p, "MOVD p+0(FP), R%d")
	f.Set(n, "MOVD n+8(FP), R%d")
	sum, x := f.Vector(), f.Vector()
	f.OpImm("movi.16b", 0, sum)
	f.Label("again")
	f.Advance("ldr.q+", 16, x, p)
	for range 2 { // x = x·x + x, by a new register and a copy
		y := f.Vector()
		f.Move(y, x)
		f.Op("fmla.4s", y, x, x)
		f.Move(x, y)
	}
	f.Op("fadd.4s", sum, sum, x)
	f.Flags(n, "SUBS $1, R%r, R%d", n)
	f.Jump("NE", "again")
	f.OpImm("str.q", 0, sum, p)
	f.Return()
	text, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "// mov v"); n != 0 {
		t.Errorf("%d copies, want none, in\n%s", n, text)
	}
	var sums []string
	for line := range strings.Lines(text) {
		if _, after, ok := strings.Cut(line, "// fadd "); ok {
			sums = strings.Split(strings.TrimSpace(after), ", ")
		}
	}
	if len(sums) != 3 || sums[0] != sums[1] {
		t.Errorf("the sum of a loop changes its register: %q", sums)
	}
}

// A value that two paths set is one register behind their label.
func TestSplitJoins(t *testing.T) {
	f := NewFunc("joins", 16)
	p, n, x := f.General(), f.General(), f.Vector()
	f.Set(p, "MOVD p+0(FP), R%d")
	f.Set(n, "MOVD n+8(FP), R%d")
	f.OpImm("movi.16b", 0, x)
	f.JumpZero(n, "none")
	f.OpImm("ldr.q", 0, x, p)
	f.Label("none")
	f.OpImm("str.q", 16, x, p)
	f.Return()
	text, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"movi v0.16b", "ldr q0, ", "str q0, "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
