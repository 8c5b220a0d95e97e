package kerneltest

import "testing"

// The numbers are never zero, and differ.
func TestNoise(t *testing.T) {
	seen := map[float32]bool{}
	for _, v := range Noise("test", 10000) {
		if v == 0 || v < -1 || v >= 1 {
			t.Fatalf("number %v", v)
		}
		seen[v] = true
	}
	if len(seen) < 9900 {
		t.Errorf("%d different numbers of 10000", len(seen))
	}
}
