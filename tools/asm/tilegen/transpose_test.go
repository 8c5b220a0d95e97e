package main

import "testing"

// Eight rows are loaded, eight columns stored, with 24 shuffles between them.
func TestTransposeLoop(t *testing.T) {
	lines := functions(t)["transpose8AVX2"]
	shuffles := 0
	for _, op := range []string{"VUNPCKLPS", "VUNPCKHPS", "VUNPCKLPD", "VUNPCKHPD", "VPERM2F128"} {
		shuffles += count(lines, "blocks", "JNZ", op)
	}
	if moves := count(lines, "blocks", "JNZ", "VMOVUPS"); moves != 16 || shuffles != 24 {
		t.Errorf("%d loads and stores and %d shuffles, want 16 and 24", moves, shuffles)
	}
}
