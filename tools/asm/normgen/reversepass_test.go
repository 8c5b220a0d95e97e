package main

import "testing"

// The loop over whole vectors holds the instructions of the definition and no more: values of
// columns are operands of these, and each matrix except the output is prefetched once.
func TestReversePassLoops(t *testing.T) {
	all := functions(t)
	for _, s := range x86 {
		for name, want := range map[string]map[string]int{
			"affine": {"VSUBPS": 1, "VMULPS": 1, "VADDPS": 1, "VFMADD231PS": 0, "VMOVUPS": 2,
				"PREFETCHT1": 1},
			"affineAddReLUStream": {"VADDPS": 2, "VCMPPS": 1, "VMOVNTPS": 1, "PREFETCHT1": 2},
			"gradient":            {"VSUBPS": 1, "VMULPS": 2, "VADDPS": 2, "VMOVUPS": 3, "PREFETCHT1": 2},
			"gradientReLUStream":  {"VCMPPS": 1, "VMOVNTPS": 1, "VMOVUPS": 3, "PREFETCHT1": 3},
		} {
			loop := between(all[name+s.name], "whole", "above:")
			for op, times := range want {
				if got := count(loop, op); got != times {
					t.Errorf("%s%s has %d %s, want %d", name, s.name, got, op, times)
				}
			}
		}
	}
}
