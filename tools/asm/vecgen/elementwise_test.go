package main

import "testing"

// The unrolled loop of an addition computes four vectors: two loads, an addition and a store each.
func TestAddLoop(t *testing.T) {
	for _, name := range []string{"addAVX512", "addAVX2"} {
		lines := functions(t)[name]
		if n := count(lines, "pass_many", "pass_few", "VADDPS"); n != 4 {
			t.Errorf("%s: %d additions, want 4", name, n)
		}
		if n := count(lines, "pass_many", "pass_few", "VMOVUPS"); n != 12 {
			t.Errorf("%s: %d loads and stores, want 12", name, n)
		}
	}
}
