package main

import "testing"

// The loop over rows holds, for each vector, the instructions of the definition and no more: values
// of columns stay in registers.
func TestRowLoops(t *testing.T) {
	all := functions(t)
	for _, s := range x86 {
		n := s.wide
		for name, want := range map[string]map[string]int{
			"moments":  {"VSUBPD": 2 * n, "VADDPD": 2 * n, "VFMADD231PD": 2 * n, "VCVTPS2PD": 2 * n, "VMOVUPD": 0},
			"sums":     {"VADDPD": 2 * n, "VCVTPS2PD": 2 * n},
			"gradSums": {"VSUBPD": 2 * n, "VADDPD": 2 * n, "VFMADD231PD": 2 * n, "VCVTPS2PD": 4 * n, "VCMPPS": 0},
		} {
			loop := between(all[name+s.name], "wideRows", "JLT")
			for op, times := range want {
				if got := count(loop, op); got != times {
					t.Errorf("%s%s has %d %s for %d vectors, want %d", name, s.name, got, op, n, times)
				}
			}
		}
	}
}
