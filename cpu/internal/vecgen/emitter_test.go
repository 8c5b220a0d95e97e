package main

import (
	"strings"
	"testing"
)

// Each function clears the upper halves of the registers before it returns, or the code of others
// would be slow; those that use no vectors may do without.
func TestReturnsAreClean(t *testing.T) {
	for name, lines := range functions(t) {
		for i, l := range lines {
			if l == "RET" && lines[i-1] != "VZEROUPPER" {
				t.Errorf("%s: %s before RET", name, lines[i-1])
			}
		}
	}
}

// AVX2 code must not use what only AVX-512 has: its registers and masks.
func TestAVX2KeepsToItsRegisters(t *testing.T) {
	for name, lines := range functions(t) {
		for _, l := range lines {
			if !strings.HasSuffix(name, "AVX2") {
				continue
			}
			for _, op := range strings.Fields(strings.NewReplacer(",", " ", "(", " ", ")", " ").Replace(l)) {
				if op[0] == 'Z' || op[0] == 'K' || (op[0] == 'X' || op[0] == 'Y') && len(op) == 3 && op[1:] > "15" {
					t.Errorf("%s: %s", name, l)
				}
			}
		}
	}
}

// A constant that nobody holds in a register cannot be had, and neither can one that is not there.
func TestConstantsMustBeHeld(t *testing.T) {
	for _, f := range []func(){
		func() { (&emitter{set: sets[0]}).constant("one") },
		func() { constantAddress("two") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}
