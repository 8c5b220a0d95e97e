package main

import (
	"fmt"
	"strings"
	"testing"
)

// Products and sums are rounded one by one: nothing is fused, and there is one product for each
// term. GELU and the exponentials of attention are fused in Go as well.
func TestCombineIsNotFused(t *testing.T) {
	for name, lines := range functions(t) {
		if strings.HasPrefix(name, "dotAVX") || strings.HasPrefix(name, "squaresAVX") {
			continue // exact products
		}
		if strings.HasPrefix(name, "gelu") || strings.HasPrefix(name, "floatExp") {
			continue // Go has them too
		}
		for _, op := range []string{"VFMADD231PS", "VFMADD231PD", "VFMADD213PS", "VFMADD213PD"} {
			if n := count(lines, "", "", op); n != 0 {
				t.Errorf("%s: %d %s", name, n, op)
			}
		}
	}
	for terms := 1; terms <= maxTerms; terms++ {
		label := fmt.Sprint("terms", terms)
		lines := functions(t)["combineAVX512"]
		if n, want := count(lines, label+"_one", label+"_rest", "VMULPS"), terms; n != want {
			t.Errorf("%d terms: %d products in a step, want %d", terms, n, want)
		}
	}
}
