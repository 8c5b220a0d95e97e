package main

import "testing"

// The loops with the logistic function have one division per vector, and load no constant if there
// are registers for all.
func TestSigmoidLoops(t *testing.T) {
	f := functions(t)
	for _, name := range []string{"sigmoids", "swishes", "swishGrads"} {
		for set, turns := range map[string]int{"AVX512": 3, "AVX2": 2} {
			if n := count(f[name+set], "pass_many", "pass_few", "VDIVPD"); n != turns {
				t.Errorf("%s: %d divisions, want %d", name+set, n, turns)
			}
		}
		if n := count(f[name+"AVX512"], "pass_many", "pass_few", "VBROADCASTSD"); n != 0 {
			t.Errorf("%s: %d constants are loaded in the loop", name, n)
		}
	}
}
