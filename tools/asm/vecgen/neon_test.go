package main

import (
	"strings"
	"testing"

	"fspda/tools/asm/asmgen"
)

// The hot loops for arm64 consist of their loads and stores, two of each register of AVX2 in one
// instruction, and of their arithmetic. The rest are addresses, one for each vector and iteration, and
// the counter: at most so many instructions.
func TestNeonLoops(t *testing.T) {
	all, err := asmgen.FunctionsArm64(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, label              string
		moves, arithmetic, other int
	}{
		{"add", "pass_many", 4 * 3, 4 * 2, 3 + 3},
		{"relus", "pass_many", 4 * 2, 4 * 2 * 3, 2 + 3 + 4}, // compare, not, and; a zero each
		{"sigmoidGrads", "pass_many", 4*3 + 4, 4 * 2 * 3, 3 + 3},
		{"addDiff1", "pass_many", 4 * 4, 4 * 2 * 3, 3 + 3},
		{"addDiff2", "pass_many", 2 * 6, 2 * 2 * 5, 4 + 3},
		{"combine", "terms2", 4 * 3, 4 * 2 * 3, 3 + 3},
		{"dot", "dot_full", 2 * 8, 8*2 + 2*8*2, 2 + 4 + 3},
	} {
		loop := asmgen.Loop(all[c.name+"NEON"], c.label)
		if c.name == "combine" {
			loop = asmgen.Loop(all[c.name+"NEON"], c.label+"_many")
		}
		moves := asmgen.Count(loop, "ldp", "stp", "ldr", "str")
		arithmetic := asmgen.Count(loop, "fadd", "fsub", "fmul", "fmla", "fcmgt", "fcmge", "mvn", "and", "fcvtl",
			"fcvtl2")
		if other := len(loop) - moves - arithmetic; moves != c.moves || arithmetic != c.arithmetic || other > c.other {
			t.Errorf("%sNEON: %d loads and stores, %d of arithmetic and %d others, want %d, %d and at most %d", c.name,
				moves, arithmetic, other, c.moves, c.arithmetic, c.other)
		}
	}
}

// Functions that need more than one operation copy no register, but for the constant that begins a
// sum: of two vectors in two registers each.
func TestNeonCopies(t *testing.T) {
	all, err := asmgen.FunctionsArm64(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, label := range map[string]string{"sigmoids": "pass_many", "swishes": "pass_many",
		"gelus": "pass_many", "geluGrads": "pass_many", "expRows": "row_full", "adamW": "pass_one"} {
		want := 0
		if strings.HasPrefix(name, "gelu") {
			want = 2 * 2
		}
		loop := asmgen.Loop(all[name+"NEON"], label)
		if n := asmgen.Count(loop, "mov"); n != want || len(loop) < 30 {
			t.Errorf("%sNEON: %d copies among %d instructions, want %d", name, n, len(loop), want)
		}
	}
}

// The exponential of arm64 copies no register, and loads each constant once for all vectors that it
// computes together.
func TestNeonSigmoid(t *testing.T) {
	all, err := asmgen.FunctionsArm64(file)
	if err != nil {
		t.Fatal(err)
	}
	loop := asmgen.Loop(all["sigmoidsNEON"], "pass_many")
	if n := asmgen.Count(loop, "mov"); n != 0 {
		t.Errorf("%d copies, want none", n)
	}
	if n := asmgen.Count(loop, "fdiv"); n != 2*2 {
		t.Errorf("%d divisions, want 4: of two vectors in two registers", n)
	}
	if n, most := asmgen.Count(loop, "ldr"), len(expConstants)+6; n > most {
		t.Errorf("%d loads of one register, want at most %d", n, most)
	}
}
