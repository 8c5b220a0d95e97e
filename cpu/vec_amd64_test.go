//go:build !noasm

package cpu

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// inCode runs f with the vector kernels in the given code.
func inCode(code vecCode, f func()) {
	defer func(old vecCode) { vecIn = old }(vecIn)
	vecIn = code
	f()
}

// Results that go past the caches are the same, wherever dst begins.
func TestStreamTwins(t *testing.T) {
	for _, c := range streamCases() {
		for _, n := range []int{0, 1, 15, 16, 17, 31, 33, 100, vecBlock + 40} {
			for offset := range 16 {
				vecTwins(t, c, n, offset, 5, 20)
			}
		}
	}
}

const printVecCodes = "FSPDA_TEST_PRINT_VEC_CODES"

// GODEBUG takes instruction sets away, and Go is always left.
func TestVecCodesCanBeSwitchedOff(t *testing.T) {
	if os.Getenv(printVecCodes) != "" {
		for _, c := range vecCodes() {
			t.Logf("has %v.", c)
		}
		return
	}
	for _, c := range []struct{ debug, without string }{
		{"cpu.avx512f=off", "avx512"}, {"cpu.avx2=off", "avx"}, {"cpu.fma=off", "avx"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestVecCodesCanBeSwitchedOff$", "-test.v")
		cmd.Env = append(os.Environ(), printVecCodes+"=1", "GODEBUG="+c.debug)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if s := string(out); strings.Contains(s, "has "+c.without) || !strings.Contains(s, "has go.") {
			t.Errorf("GODEBUG=%s leaves\n%s", c.debug, out)
		}
		if c.without == "avx512" && slices.Contains(vecCodes(), inAVX2) && !strings.Contains(string(out), "has avx2.") {
			t.Errorf("GODEBUG=%s takes AVX2 too:\n%s", c.debug, out)
		}
	}
}
