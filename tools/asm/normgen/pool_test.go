package main

import "testing"

// An element of a window takes two comparisons for each vector, an element of its gradient one.
func TestWindowLoops(t *testing.T) {
	all := functions(t)
	for _, s := range x86 {
		for name, each := range map[string]int{"maxPool": 2, "maxPoolGrad": 1} {
			for label, vectors := range map[string]int{"cols": s.wide, "colsSingle": 1, "colsTail": 1} {
				if got := count(between(all[name+s.name], label, "JNZ"), "VCMPPS"); got != each*vectors {
					t.Errorf("%s%s compares %d times at %s, want %d", name, s.name, got, label, each*vectors)
				}
			}
		}
	}
}
