package asmgen

import (
	"slices"
	"testing"
)

// A loop ends at the last jump to its label, and contains inner labels' instructions.
func TestLoop(t *testing.T) {
	lines := []string{"MOVD $0, R1", "again:", "fadd v0.4s, v1.4s, v2.4s", "BEQ skip", "fadd v3.4s, v1.4s, v2.4s",
		"skip:", "SUBS $1, R1, R1", "BNE again", "RET"}
	loop := Loop(lines, "again")
	if !slices.Equal(loop, []string{lines[2], lines[3], lines[4], lines[6], lines[7]}) {
		t.Errorf("%q", loop)
	}
	if n := Count(loop, "fadd", "SUBS"); n != 3 {
		t.Errorf("%d instructions, want 3", n)
	}
	if len(Loop(lines, "none")) != 0 {
		t.Error("a loop without a label")
	}
}
