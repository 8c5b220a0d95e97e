package strata

import (
	"math/bits"
	"testing"

	"fspda/internal/rng"
)

// Otherwise, there is an offset such that each shifted block has one coordinate: cyclically
// consecutive coordinates are less than two longest blocks apart. All kinds of wrap-around occur.
func TestTurnedBlocks(t *testing.T) {
	for _, c := range []struct{ d, k int }{{37, 5}, {11, 7}, {100, 99}, {7, 2}, {1000, 3}} {
		first, last := map[uint32]bool{}, map[uint32]bool{}
		s := rng.New(4, "test", uint64(c.d))
		dst := make([]uint32, c.k)
		for range 5000 {
			drawRotated(dst, c.d, c.k, &s)
			first[dst[0]], last[dst[c.k-1]] = true, true
			longest := c.d/c.k + 1
			for n := range dst {
				next := dst[(n+1)%c.k]
				if n == c.k-1 {
					next += uint32(c.d)
				}
				if gap := int(next) - int(dst[n]); gap < 1 || gap >= 2*longest {
					t.Fatalf("%d of %d: %v", c.k, c.d, dst)
				}
			}
		}
		if !first[0] || !last[uint32(c.d-1)] {
			t.Errorf("%d of %d: coordinate 0 first %v, coordinate %d last %v", c.k, c.d, first[0], c.d-1,
				last[uint32(c.d-1)])
		}
	}
}

// The cursor's lengths are those of floor((b+1)·d/k) - floor(b·d/k) from any block on: with blocks
// this long the upper half of the draw is bounded by them, and the starts add up.
func TestCutterWalksAllBlocks(t *testing.T) {
	for _, c := range []struct{ d, k int }{{37, 5}, {64, 8}, {11, 7}, {1 << 20, 999}} {
		for _, from := range []int{0, 1, c.k / 2, c.k - 1} {
			s := rng.New(5, "test", uint64(from))
			cuts := newCursor(c.d, c.k)
			cuts.seek(from)
			dst := make([]uint32, c.k-from)
			cuts.fill(dst, uint32(from*c.d/c.k), &s)
			for n, x := range dst {
				b := from + n
				if lo, hi := b*c.d/c.k, (b+1)*c.d/c.k; int(x) < lo || int(x) >= hi {
					t.Fatalf("%d of %d: block %d gives %d, outside [%d,%d)", c.k, c.d, b, x, lo, hi)
				}
			}
		}
	}
}

// redraw returns a product that is allowed, and is uniform: 3 does not divide 2^32, and the one
// product to reject is 0.
func TestRedraw(t *testing.T) {
	s := rng.New(6, "test")
	if product, after := redraw(5<<32|1, 3, s); product != 5<<32|1 || after != s {
		t.Error("an allowed product was drawn again")
	}
	if product, after := redraw(0, 3, s); after == s || product>>32 > 2 {
		t.Errorf("product 0 of 3 became %x", product)
	}
}

// The cursor's blocks begin at floor(b·d/k), up to the last of 2^32 numbers, for few blocks, many
// blocks, and blocks of nearly equal length.
func TestCutterIsExact(t *testing.T) {
	s := rng.New(7, "test")
	for range 300 {
		d := 1 + s.IntN(1<<32-1)
		for _, k := range []int{1 + s.IntN(d), max(1, d/10), max(1, d-1), d, 1 + s.IntN(min(d, 1000))} {
			cuts := newCursor(d, k)
			for _, b := range []int{0, s.IntN(k), k - 1} {
				cuts.seek(b)
				_, over := bits.Add64(cuts.rest, cuts.part, 0)
				got := uint64(cuts.short) + over
				if want := uint64(b+1)*uint64(d)/uint64(k) - uint64(b)*uint64(d)/uint64(k); got != want {
					t.Fatalf("block %d of %d in %d has length %d, want %d", b, k, d, got, want)
				}
			}
		}
	}
}
