package main

import (
	"path/filepath"
	"testing"

	"fspda/tools/asm/asmgen"
)

// The files in the repository are the generator's output.
func TestNoDiff(t *testing.T) {
	for _, o := range outputs {
		if err := o.Check(filepath.Join("..", "..", "..", o.folder)); err != nil {
			t.Error(err)
		}
	}
}

// The loops hold the arithmetic of their definitions, and copy no register but those that begin sums
// twice.
func TestLoops(t *testing.T) {
	for i, want := range []map[string]map[string]int{
		{"inverseNEON": { // two passes of 16 products of eight values, and two transpositions
			"smull": 2 * 4, "smull2": 2 * 4, "smlal": 2 * 12, "smlal2": 2 * 12, "zip1": 24, "zip2": 24, "mul": 8,
			"ldp": 8, "str": 8}},
		{"fromYCbCrNEON": {"mla": 8, "mls": 8, "sshr": 12, "add": 12, "st3": 1, "ldr": 3},
			"weighSumNEON": {"mla": 2, "ldr": 2, "stp": 1}, "interpolateNEON": {"mla": 4, "sshl": 4, "st2": 1}},
		{"normalizeNEON": {"fmul": 4, "fadd": 4, "stp": 2, "ldr": 1},
			"patternNEON": {"fmul": 12, "fadd": 12, "stp": 6}},
	} {
		all, err := asmgen.FunctionsArm64(outputs[i].File)
		if err != nil {
			t.Fatal(err)
		}
		for name, counts := range want {
			label := map[int]string{0: "block", 1: "group", 2: "pixels"}[i]
			loop := asmgen.Loop(all[name], label)
			for op, n := range counts {
				if got := asmgen.Count(loop, op); got != n {
					t.Errorf("%s has %d %s, want %d", name, got, op, n)
				}
			}
		}
	}
}
