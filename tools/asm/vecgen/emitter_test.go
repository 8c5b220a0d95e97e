package main

import (
	"strings"
	"testing"
)

// Each function clears the upper halves of the registers before it returns, or other code would be
// slow; functions without vectors need not.
func TestReturnsAreClean(t *testing.T) {
	for name, lines := range functions(t) {
		for i, l := range lines {
			if l == "RET" && lines[i-1] != "VZEROUPPER" {
				t.Errorf("%s: %s before RET", name, lines[i-1])
			}
		}
	}
}

// AVX2 code must not use registers and masks that only AVX-512 has.
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

// A constant that is not held in a register, or does not exist, cannot be used.
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
