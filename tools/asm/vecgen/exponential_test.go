package main

import "testing"

// The loop of the logistic function has one division per vector, and loads no constant if there are
// registers for all.
func TestSigmoidLoop(t *testing.T) {
	f := functions(t)
	for name, turns := range map[string]int{"sigmoidsAVX512": 3, "sigmoidsAVX2": 2} {
		if n := count(f[name], "pass_many", "pass_few", "VDIVPD"); n != turns {
			t.Errorf("%s: %d divisions, want %d", name, n, turns)
		}
	}
	if n := count(f["sigmoidsAVX512"], "pass_many", "pass_few", "VBROADCASTSD"); n != 0 {
		t.Errorf("%d constants are loaded in the loop", n)
	}
}
