//go:build !noasm && !fspda_noasm

package isa

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const printSets = "FSPDA_TEST_PRINT_SETS"

// GODEBUG removes instruction sets, and Go always remains.
func TestInstructionSetsCanBeSwitchedOff(t *testing.T) {
	if os.Getenv(printSets) != "" {
		for _, i := range Available() {
			t.Logf("has %s.", i)
		}
		t.Logf("uses %s.", Active)
		return
	}
	for _, c := range []struct{ debug, without string }{
		{"cpu.avx512=off", "avx512"}, {"cpu.avx512f=off", "avx512"},
		{"cpu.avx2=off", "avx"}, {"cpu.avx=off", "avx"}, {"cpu.fma=off", "avx"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInstructionSetsCanBeSwitchedOff$", "-test.v")
		cmd.Env = append(os.Environ(), printSets+"=1", "GODEBUG="+c.debug)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text := string(out)
		if strings.Contains(text, "has "+c.without) || strings.Contains(text,
			"uses "+c.without) || !strings.Contains(text, "has go.") {
			t.Errorf("GODEBUG=%s leaves\n%s", c.debug, out)
		}
		if c.without == "avx512" && slices.Contains(Available(), AVX2) && !strings.Contains(text, "has avx2.") {
			t.Errorf("GODEBUG=%s removes AVX2 too:\n%s", c.debug, out)
		}
	}
}
