package main

import "testing"

// The inner loop loads and stores one vector.
func TestCopyPiecesLoop(t *testing.T) {
	if moves := count(functions(t)["copyPiecesAVX2"], "eights", "JLT", "VMOVUPS"); moves != 2 {
		t.Errorf("%d loads and stores, want 2", moves)
	}
}
