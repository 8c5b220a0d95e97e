//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package strata

import (
	"slices"
	"testing"

	"fspda/internal/rng"
)

// The assembly draws the same coordinates as the Go code, also with rejected draws, which are frequent
// with blocks of 2^28, and leaves the stream and the cursor in the same state.
func TestTwins(t *testing.T) {
	if !useAssembly {
		t.Skip("this processor has no assembly")
	}
	again := 0
	for _, d := range []int{160, 1000, 79510, 25557032, 3_000_000_000, 1<<32 - 5} {
		for _, k := range []int{16, 17, 31, 32, 33, 100, 4095, 4096, 4097, 7951, 20000} {
			if k > d {
				continue
			}
			for turn := range 3 {
				slow, fast := newCursor(d, k), newCursor(d, k)
				a, b := rng.New(1, "mask", uint64(d), uint64(k), uint64(turn)), rng.New(1, "mask", uint64(d), uint64(k),
					uint64(turn))
				first := turn * k / 4
				slow.seek(first)
				fast.seek(first)
				want, got := make([]uint32, k-first), make([]uint32, k-first+1)
				got[k-first] = 12345
				slow.fillSlow(want, uint32(7*turn), &a)
				fast.fill(got[:k-first], uint32(7*turn), &b)
				if !slices.Equal(got[:k-first], want) || got[k-first] != 12345 {
					t.Fatalf("d=%d, k=%d, repetition %d: other coordinates, or a write beyond the end", d, k, turn)
				}
				if a != b || slow != fast {
					t.Errorf("d=%d, k=%d, repetition %d: stream %v and cursor %+v, want %v and %+v", d, k, turn, b,
						fast, a, slow)
				}
				if a.Counter()-rng.New(1, "mask", uint64(d), uint64(k),
					uint64(turn)).Counter() != uint64((k-first+1)/2)*0x9e3779b97f4a7c15 {
					again++
				}
			}
		}
	}
	if again < 10 {
		t.Errorf("%d draws were rejected, want more", again)
	}
}
