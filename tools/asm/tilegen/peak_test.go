package main

import "testing"

// The loop consists of multiply-adds and its counter.
func TestPeakLoop(t *testing.T) {
	all := functions(t)
	for _, s := range sets {
		if s.pairs {
			continue
		}
		lines := all["peak"+s.name]
		if n := count(lines, "again", "JNZ", "VFMADD231PS"); n != peakChains {
			t.Errorf("%s has %d multiply-adds, want %d", s.name, n, peakChains)
		}
		if n := count(lines, "again", "JNZ", "VMOVUPS"); n != 0 {
			t.Errorf("%s has %d loads or stores, want none", s.name, n)
		}
	}
}
