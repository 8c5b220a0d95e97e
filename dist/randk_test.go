package dist

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// All subsets of size k are equally likely, below and above one half, where the complement is
// drawn.
func TestRandKIsUniformOverSets(t *testing.T) {
	const rounds = 30000
	for _, k := range []int{2, 3, 4} {
		m := mustMask(t, "randk", float64(k)/6, []int{6})
		count := map[string]float64{}
		for round := range rounds {
			count[fmt.Sprint(m.Draw(nil, round, 0, 1))]++
		}
		sets := map[int]float64{2: 15, 3: 20, 4: 15}[k]
		if float64(len(count)) != sets {
			t.Fatalf("k=%d: %d sets of %v", k, len(count), sets)
		}
		for set, n := range count {
			if mean := rounds / sets; math.Abs(n-mean) > 5*math.Sqrt(mean) {
				t.Errorf("k=%d: set %s came %v times, want about %v", k, set, n, mean)
			}
		}
	}
}

// drawPlain is a reference implementation of drawSubset that uses a map and sorts.
func drawPlain(k, d int, s *rng.Stream) []uint32 {
	taken := map[uint32]bool{}
	least := -uint32(d) % uint32(d)
	for throws := min(k, d-k); len(taken) < throws; {
		u := s.Uint64()
		for _, half := range []uint32{uint32(u), uint32(u >> 32)} {
			if product := uint64(half) * uint64(d); uint32(product) >= least && len(taken) < throws {
				taken[uint32(product>>32)] = true
			}
		}
	}
	var out []uint32
	for c := range uint32(d) {
		if taken[c] == (2*k <= d) {
			out = append(out, c)
		}
	}
	return out
}

func TestDrawSubsetAgreesWithPlain(t *testing.T) {
	for _, d := range []int{1, 2, 63, 64, 65, 128, 1000, 30011} {
		b := newBitmap(d)
		for _, k := range []int{0, 1, d / 200, d / 100, d / 60, d / 10, d / 3, d / 2, d/2 + 1, d - 1, d} {
			if k > d {
				continue
			}
			fast, plain := rng.New(1, "test", uint64(d), uint64(k)), rng.New(1, "test", uint64(d), uint64(k))
			got := make([]uint32, k)
			drawSubset(got, d, 100, b, &fast)
			want := drawPlain(k, d, &plain)
			for c := range want {
				want[c] += 100
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d of %d: %v, want %v", k, d, got, want)
			}
			if slices.ContainsFunc(append(b.words, b.marks...), func(w uint64) bool { return w != 0 }) {
				t.Fatalf("%d of %d does not clear all bits", k, d)
			}
		}
	}
}

// Each layer has its own count and coordinates.
func TestPerLayerStaysInLayers(t *testing.T) {
	m := mustMask(t, "randk-per-layer", 0.1, mlpSizes)
	want := []int{7839, 9, 99, 1}
	got := make([]int, len(mlpSizes))
	for _, c := range m.Draw(nil, 3, 0, 1) {
		layer, end := 0, mlpSizes[0]
		for int(c) >= end {
			layer++
			end += mlpSizes[layer]
		}
		got[layer]++
	}
	if !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

func TestKeptInLayer(t *testing.T) {
	for _, c := range []struct {
		size    int
		density float64
		want    int
	}{{78400, 0.1, 7839}, {100, 0.1, 9}, {1000, 0.1, 99}, {10, 0.1, 1}, {78400, 0.067, 5252}, {100, 0.067, 6}, {1000,
		0.067, 66},
		{78400, 0.01, 784}, {1000, 0.01, 10}, {78400, 0.0001, 7}, {1, 0.5, 1}, {10, 1, 10}} {
		if got := keptInLayer(c.size, c.density); got != c.want {
			t.Errorf("%v of %d is %d, want %d", c.density, c.size, got, c.want)
		}
	}
}
