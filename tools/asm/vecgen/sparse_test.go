package main

import "testing"

// The loop prefetches one later coordinate for each coordinate, in every vector.
func TestSelectedLoopsPrefetch(t *testing.T) {
	for name, want := range map[string]int{"gatherDenseAVX2": 4, "addDiffDense1AVX2": 4, "addDiffDense2AVX2": 8} {
		if n := count(functions(t)[name], "coordinates", "", "PREFETCHT0"); n != want {
			t.Errorf("%s: %d requests for four coordinates, want %d", name, n, want)
		}
	}
}
