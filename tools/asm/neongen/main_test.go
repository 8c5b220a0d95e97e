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

// loops are the instructions of hot loops that are counted, by function and label.
var loops = map[string]map[string]map[string]int{
	"inverseNEON": {"block": { // two passes of 16 products of eight values, and two transpositions
		"smull": 2 * 4, "smull2": 2 * 4, "smlal": 2 * 12, "smlal2": 2 * 12, "zip1": 24, "zip2": 24, "mul": 8,
		"ldp": 8, "str": 8}},
	"fromYCbCrNEON":   {"group": {"mla": 8, "mls": 8, "sshr": 12, "add": 12, "st3": 1, "ldr": 3}},
	"weighSumNEON":    {"group": {"mla": 2, "ldr": 2, "stp": 1}},
	"interpolateNEON": {"group": {"mla": 4, "sshl": 4, "st2": 1}},
	"normalizeNEON":   {"pixels": {"fmul": 4, "fadd": 4, "stp": 2, "ldr": 1}},
	"patternNEON":     {"pixels": {"fmul": 12, "fadd": 12, "stp": 6}},
	"sumLinesNEON": { // of a row a load, and for each eight numbers a conversion, a product and a sum
		"first1": {"ushll": 2, "ushll2": 2, "sqrdmulh": 4, "sqadd": 0, "ldp": 1, "stp": 2, all: 14},
		"first4": {"ushll": 8, "ushll2": 8, "sqrdmulh": 16, "sqadd": 12, "ldp": 4, "stp": 2, all: 53},
		"more4":  {"sqrdmulh": 16, "sqadd": 16, "ldp": 6, "stp": 2, all: 59}},
	"sumColumnsNEON": {"pair": {"sqrdmulh": 4, "sqadd": 4, "ldr": 4, "ldp": 2, all: 16}},
	"sumRowsNEON": { // a number, its row and three instructions of addresses and counters
		"terms64": {"fmul": 16, "fadd": 16, "ldp": 8, "ld1r": 1, all: 44},
		"terms4":  {"fmul": 1, "fadd": 1, "ldr": 1, "ld1r": 1, all: 7}},
	"latticeEncodeNEON": {"encode": {"ldr": 1, "str": 1, "frintn": 2, "fabd": 2, "fmax": 4, "fdiv": 0, all: 24}},
	"latticeDecodeNEON": {"decode": {"ldr": 2, "str": 1, "frintn": 2, "fabd": 4, "fmax": 6, "fdiv": 0, all: 38}},
	"drawNEON":          {"group": {"MUL": 8, "umull": 2, "umull2": 2, "stp": 1, all: 75}},
}

// all counts every instruction.
const all = "all"

// The loops hold the arithmetic of their definitions, and copy no register but those that begin sums
// twice.
func TestLoops(t *testing.T) {
	tested := map[string]bool{}
	for _, o := range outputs {
		functions, err := asmgen.FunctionsArm64(o.File)
		if err != nil {
			t.Fatal(err)
		}
		for name, lines := range functions {
			tested[name] = true
			if len(loops[name]) == 0 {
				t.Errorf("%s has no loop that is counted", name)
			}
			for label, counts := range loops[name] {
				loop := asmgen.Loop(lines, label)
				for op, want := range counts {
					got := len(loop)
					if op != all {
						got = asmgen.Count(loop, op)
					}
					if got != want {
						t.Errorf("loop %s of %s has %d %s, want %d", label, name, got, op, want)
					}
				}
			}
		}
	}
	for name := range loops {
		if !tested[name] {
			t.Errorf("no generator writes %s", name)
		}
	}
}
