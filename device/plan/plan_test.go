package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Blocks that are in use at the same step do not overlap, offsets are aligned, the size is the end
// of the last block, and packing again gives the same offsets.
func TestPackKeepsBlocksApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		const align = 16
		blocks := make([]*Block, 1+r.IntN(30))
		for i := range blocks {
			blocks[i] = &Block{Size: 1 + r.IntN(100)}
			for range r.IntN(3) { // none: unused
				blocks[i].Use(r.IntN(20))
			}
		}
		size, end, sum := Pack(blocks, align), 0, 0
		offsets := make([]int, len(blocks))
		for i, a := range blocks {
			offsets[i] = a.Off
			if !a.Used() {
				continue
			}
			if a.Off%align != 0 {
				t.Errorf("offset %d is no multiple of %d", a.Off, align)
			}
			end, sum = max(end, a.Off+Align(a.Size, align)), sum+Align(a.Size, align)
			for _, b := range blocks[:i] {
				if b.Used() && a.overlaps(b.Lifetime) && a.Off < b.Off+b.Size && b.Off < a.Off+a.Size {
					t.Errorf("blocks %+v and %+v overlap", *a, *b)
				}
			}
		}
		if size != end || size > sum {
			t.Errorf("size %d, want the end %d of the last block, at most the sum %d", size, end, sum)
		}
		Pack(blocks, align)
		for i, b := range blocks {
			if b.Off != offsets[i] {
				t.Errorf("block %d is at %d the second time, at %d the first", i, b.Off, offsets[i])
			}
		}
	}
}

func TestLifetime(t *testing.T) {
	var l Lifetime
	if l.Used() {
		t.Error("the zero lifetime is used")
	}
	l.Extend(Lifetime{})
	l.Use(5)
	l.Use(3)
	l.Extend(Lifetime{6, 8})
	if got := fmt.Sprint(l); got != "{3 8}" || !l.Used() {
		t.Errorf("steps 5, 3, 6 and 7 give %s, want {3 8}", got)
	}
}
