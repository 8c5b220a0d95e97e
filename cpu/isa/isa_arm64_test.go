//go:build !noasm && !fspda_noasm

package isa

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const printSets = "FSPDA_TEST_PRINT_SETS"

// GODEBUG removes NEON, and Go remains.
func TestInstructionSetsCanBeSwitchedOff(t *testing.T) {
	if os.Getenv(printSets) != "" {
		for _, i := range Available() {
			t.Logf("has %s.", i)
		}
		return
	}
	for debug, want := range map[string]bool{"cpu.asimd=on": true, "cpu.asimd=off": false} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInstructionSetsCanBeSwitchedOff$", "-test.v")
		cmd.Env = append(os.Environ(), printSets+"=1", "GODEBUG="+debug)
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("an emulator of one program starts no other")
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if text := string(out); strings.Contains(text, "has neon.") != want || !strings.Contains(text, "has go.") {
			t.Errorf("GODEBUG=%s leaves\n%s", debug, out)
		}
	}
}
