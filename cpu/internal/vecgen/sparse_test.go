package main

import "testing"

// Each coordinate asks for one later, in every vector.
func TestFarLoopsAskAhead(t *testing.T) {
	for name, want := range map[string]int{"gatherFarAVX2": 4, "addDiffFar1AVX2": 4, "addDiffFar2AVX2": 8} {
		if n := count(functions(t)[name], "coordinates", "", "PREFETCHT0"); n != want {
			t.Errorf("%s: %d requests for four coordinates, want %d", name, n, want)
		}
	}
}
