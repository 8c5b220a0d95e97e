package main

import "testing"

// The loop over whole vectors holds the instructions of the definition, and reads and writes each
// sum once.
func TestRowPassLoops(t *testing.T) {
	all := functions(t)
	for _, s := range x86 {
		for name, want := range map[string]map[string]int{
			"gradSumsReLU": {"VSUBPD": 2, "VADDPD": 2, "VFMADD231PD": 2, "VCVTPS2PD": 6, "VCMPPS": 1,
				"VMOVUPD": 6, "PREFETCHT1": 3},
			"gradSumsAddReLUStream": {"VADDPD": 2, "VFMADD231PD": 2, "VCMPPS": 1, "VMOVNTPS": 1, "PREFETCHT1": 3},
		} {
			loop := between(all[name+s.name], "whole", "part:")
			for op, times := range want {
				if got := count(loop, op); got != times {
					t.Errorf("%s%s has %d %s, want %d", name, s.name, got, op, times)
				}
			}
		}
	}
}
