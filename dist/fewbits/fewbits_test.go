package fewbits

import "testing"

// Numbers of eight bits: halves go to even ones, larger numbers become the largest, and
// numbers below half of the smallest become zero. Every code stands for the number that has it.
func TestE4M3(t *testing.T) {
	for x, want := range map[float64]float64{17: 16, 18: 18, 19: 20, 460: 448, 1. / 512: 1. / 512, 1. / 1024: 0,
		1./64 - 1./1024: 1. / 64, -19: -20, 0: 0} {
		if got := (E4M3{}).Nearest(x); got != want {
			t.Errorf("%v becomes %v, want %v", x, got, want)
		}
	}
	seen := map[float64]bool{}
	for code := range uint64(256) {
		x := (E4M3{}).Value(code)
		if code&127 == 127 { // no number
			continue
		}
		if got := (E4M3{}).Nearest(x); got != x || x != 0 && (E4M3{}).Code(x) != code {
			t.Errorf("code %d stands for %v, which becomes %v of code %d", code, x, got, (E4M3{}).Code(x))
		}
		seen[x] = true
	}
	if len(seen) != 253 { // one zero
		t.Errorf("%d numbers", len(seen))
	}
}
