//go:build !noasm && !fspda_noasm

package data

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const printCodes = "FSPDA_TEST_PRINT_CODES"

// GODEBUG disables instruction sets.
func TestNormalizeCodesCanBeSwitchedOff(t *testing.T) {
	if os.Getenv(printCodes) != "" {
		for _, c := range normalizeCodes() {
			t.Logf("has %s.", c.name)
		}
		return
	}
	for debug, without := range map[string]string{"cpu.avx512f=off": "has avx512", "cpu.avx2=off": "has avx"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNormalizeCodesCanBeSwitchedOff$", "-test.v")
		cmd.Env = append(os.Environ(), printCodes+"=1", "GODEBUG="+debug)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if s := string(out); strings.Contains(s, without) || !strings.Contains(s, "has sse2.") {
			t.Errorf("GODEBUG=%s leaves\n%s", debug, out)
		}
	}
}
