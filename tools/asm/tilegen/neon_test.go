package main

import (
	"testing"

	"fspda/tools/asm/asmgen"
)

// neonLoops are the loops of a micro-kernel: products of an iteration, and how many instructions of a
// hundred must multiply and add in the largest tile.
var neonLoops = map[string]struct{ products, share int }{
	"packed": {8, 85}, "columns": {4, 76}, "rowsPacked": {8, 84}, "rowsAny": {4, 80}, "apart": {1, 64},
}

// A loop has one multiply-add for each register of sums and product, no load beyond those of a
// column of A and a row of B, and no copy. In the largest tile the rest is small: with 85 % a
// processor that starts four multiply-adds a cycle, as Apple's and Neoverse V2 do, has to start 4.7
// instructions a cycle.
func TestNeonTileLoops(t *testing.T) {
	all, err := asmgen.FunctionsArm64(file)
	if err != nil {
		t.Fatal(err)
	}
	for rows := 1; rows <= neon.rows; rows++ {
		for vectors := 1; vectors <= maxVectors; vectors++ {
			name := neon.tileName(rows, vectors)
			for label, want := range neonLoops {
				loop := asmgen.Loop(all[name], label)
				adds := asmgen.Count(loop, "fmla")
				if sums := rows * 2 * vectors; adds != sums*want.products {
					t.Errorf("%s, %s: %d multiply-adds, want %d products of %d registers", name, label, adds,
						want.products, sums)
				}
				loads := asmgen.Count(loop, "ldp", "ldr", "ld1r")
				ofA := map[string]int{"packed": 8, "columns": 4 * ((rows + 3) / 4), "rowsPacked": 2 * rows,
					"rowsAny": rows, "apart": rows}[label]
				if label == "columns" && rows == 3 { // of two and of one
					ofA = 8
				}
				if most := ofA + want.products*vectors; loads != most {
					t.Errorf("%s, %s: %d loads, want %d", name, label, loads, most)
				}
				if n := asmgen.Count(loop, "mov", "str", "stp", "movi"); n != 0 {
					t.Errorf("%s, %s: %d copies or stores, want none", name, label, n)
				}
				largest := rows == neon.rows && vectors == maxVectors
				if share := 100 * adds / max(1, len(loop)); largest && share < want.share {
					t.Errorf("%s, %s: %d of %d instructions multiply and add, want %d %%", name, label, adds, len(loop),
						want.share)
				}
			}
		}
	}
}

// The loop that measures the peak has nothing but multiply-adds and its counter.
func TestNeonPeakLoop(t *testing.T) {
	all, err := asmgen.FunctionsArm64(file)
	if err != nil {
		t.Fatal(err)
	}
	loop := asmgen.Loop(all["peakNEON"], "again")
	if adds := asmgen.Count(loop, "fmla"); adds != 2*peakChains || len(loop) != adds+2 {
		t.Errorf("%d multiply-adds among %d instructions, want %d and two more", adds, len(loop), 2*peakChains)
	}
}
