package dist

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// listPlain is a reference implementation of drainBits, bit by bit.
func listPlain(words []uint64, offset uint32) (list []uint32) {
	for w, word := range words {
		for b := range 64 {
			if word>>b&1 == 1 {
				list = append(list, offset+uint32(64*w+b))
			}
		}
	}
	return list
}

// Words with every number of bits, from empty to full, in sets from sparse to dense.
func TestTakeBits(t *testing.T) {
	s := rng.New(1, "test")
	for _, words := range []int{0, 1, 2, 63, 64, 65, 700} {
		for _, density := range []int{0, 1, 5, 64, 400, 1024, 1500, 2048} { // of 2048 bits
			t.Run(fmt.Sprintf("%d words of %d in 2048", words, density), func(t *testing.T) {
				b := newBitmap(64 * words)
				for c := range uint64(64 * words) {
					if s.IntN(2048) < density && b.setMarked(c) != 1 {
						t.Fatalf("bit %d was set before", c)
					}
				}
				want := listPlain(b.words, 1000)
				other := &bitmap{slices.Clone(b.words), b.marks}
				got := make([]uint32, len(want))
				if drainBits(got, 1000, b.words); !slices.Equal(got, want) {
					t.Errorf("drainBits lists %v, want %v", got, want)
				}
				clear(got)
				if other.drainMarked(got, 1000, other.words); !slices.Equal(got, want) {
					t.Errorf("drainMarked lists %v, want %v", got, want)
				}
				if left := slices.Concat(b.words, other.words, other.marks); slices.Max(append(left, 0)) != 0 {
					t.Error("some bits were not cleared")
				}
			})
		}
	}
}

// setMarked reports a bit as new once, and marks its word.
func TestSetBit(t *testing.T) {
	b := newBitmap(64 * 130)
	for _, c := range []uint64{0, 63, 64, 4095, 4096, 8319} {
		if b.setMarked(c) != 1 || b.setMarked(c) != 0 || setBit(b.words, c) != 0 {
			t.Errorf("bit %d is not new exactly once", c)
		}
		if w := c / 64; b.words[w]>>(c%64)&1 != 1 || b.marks[w/64]>>(w%64)&1 != 1 {
			t.Errorf("bit %d: word %x, marks %x", c, b.words[w], b.marks[w/64])
		}
	}
}

// The complement has no bits from d on.
func TestComplement(t *testing.T) {
	for _, d := range []int{1, 63, 64, 65, 200} {
		b := newBitmap(d)
		setBit(b.words, 0)
		complement(b.words, d)
		n := 0
		for _, w := range b.words {
			n += bits.OnesCount64(w)
		}
		if n != d-1 || b.words[0]&1 != 0 {
			t.Errorf("%d of %d bits, words %x", n, d, b.words)
		}
	}
}
