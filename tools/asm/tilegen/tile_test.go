package main

import (
	"fmt"
	"testing"
)

// The loop of a micro-kernel has one multiply-add for each accumulator, one load for each number of
// A and vector of B, and no spills. With one vector of AVX-512 the multiply-adds of numbers load
// A themselves.
func TestTileLoops(t *testing.T) {
	all := functions(t)
	for _, s := range sets {
		for rows := 1; rows <= s.rows; rows++ {
			for vectors := 1; vectors <= maxVectors; vectors++ {
				name := fmt.Sprintf("tile%dx%d%s", rows, vectors*s.lanes, s.name)
				lines := all[name]
				loads := count(lines, "products", "JNZ", "VMOVUPS") + count(lines, "products", "JNZ", "VMOVUPS.Z")
				adds, inside, ways, add := rows*vectors, 0, 2, "VFMADD231PS"
				if !s.masked { // rows of whole vectors, and others
					ways = 4
				}
				if s.pairs {
					add = "VDPBF16PS"
				} else if s.masked && vectors == 1 {
					adds, inside = 0, rows
				}
				for what, c := range map[string][2]int{
					"multiply-adds":     {count(lines, "products", "JNZ", add), adds},
					"broadcasting ones": {count(lines, "products", "JNZ", add+".BCST"), inside},
					"broadcasts":        {count(lines, "products", "JNZ", "VBROADCASTSS"), rows - inside},
					"loads":             {loads, vectors},
					"ways out":          {count(lines, "", "", "RET") + countLine(lines, "RET"), ways},
					"zeroed upper half": {countLine(lines, "VZEROUPPER"), ways},
				} {
					if c[0] != c[1] {
						t.Errorf("%s has %d %s, want %d", name, c[0], what, c[1])
					}
				}
			}
		}
	}
}

// countLine returns the number of lines equal to what.
func countLine(lines []string, what string) int {
	n := 0
	for _, l := range lines {
		if l == what {
			n++
		}
	}
	return n
}
