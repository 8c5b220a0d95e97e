package data

import (
	"slices"
	"testing"
)

func TestNewPixels(t *testing.T) {
	for _, n := range []int{0, 1, 5000, 4 << 20} {
		p := newPixels(n)
		if len(p) != n {
			t.Errorf("%d pixels, want %d", len(p), n)
		}
		for i, b := range p {
			if b != 0 {
				t.Fatalf("pixel %d of %d is %d, want 0", i, n, b)
			}
		}
	}
}

func TestSettled(t *testing.T) {
	for _, n := range []int{0, 1, 5000} {
		p := make([]uint8, n)
		for i := range p {
			p[i] = uint8(i)
		}
		got := compact(p)
		if !slices.Equal(got, p) {
			t.Errorf("%d pixels changed", n)
		}
		if n > 0 && &got[0] == &p[0] {
			t.Errorf("%d pixels are where they were", n)
		}
	}
}
