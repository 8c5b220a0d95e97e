package main

import "testing"

// A scalar product has dotSums partial sums, one vector of them for each multiply-add of the loop.
func TestDotLoop(t *testing.T) {
	for _, s := range x86 {
		if n := count(functions(t)["dot"+s.name], "dot_full", "dot_last", "VFMADD231PD"); n*s.half != dotSums {
			t.Errorf("%s: %d sums of %d numbers, want %d in all", s.name, n, s.half, dotSums)
		}
	}
}
