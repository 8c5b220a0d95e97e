package kerneltest

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/dist"
	"fspda/internal/rng"
)

const maskSeed = 11

// maskScratch holds the output and scratch of masks.
type maskScratch struct {
	dst              []uint32
	counter, scratch kernels.Address
}

func newMaskScratch(h *fixture, k int) maskScratch {
	two := kernels.StratifiedScratch
	return maskScratch{dst: make([]uint32, k+1), counter: at(h, make([]uint64, 1)), scratch: at(h, two[:])}
}

// sameMask compares a mask with the mask of dist, for a few iterations with the same scratch.
func sameMask(h *fixture, spec string, density float64, sizes []int, draw func(m dist.Mask, s rng.Stream) []uint32) {
	m, err := dist.ParseMask(spec, density, sizes, maskSeed)
	if err != nil {
		h.Fatalf("%v", err)
	}
	for it := range 3 {
		want := m.Draw(nil, it, 4, 2)
		if got := draw(m, rng.New(maskSeed, "mask", uint64(it), 2, 4)); !slices.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			h.Errorf("%s of %v at density %v, iteration %d: %d coordinates, want %d; the first difference is at %d",
				spec, sizes, density, it, len(got), len(want), at)
		}
	}
}

func stratified(h *fixture) {
	for _, c := range []struct {
		d       int
		density float64
	}{{1000, 0.1}, {1000, 0.5}, {999, 0.003}, {79510, 0.1}, {79510, 0.0377}, {50001, 0.9}, {7, 0.3}, {101, 0.97}} {
		sameMask(h, "stratified", c.density, []int{c.d}, func(m dist.Mask, s rng.Stream) []uint32 {
			x := newMaskScratch(h, m.Len())
			h.run(kernels.Stratified(at(h, x.dst), c.d, m.Len(), s, x.counter, x.scratch)...)
			return x.dst[:m.Len()]
		})
	}
}

// In long blocks many draws are rejected and all later ones move: this checks the redrawing.
func stratifiedRedraws(h *fixture) {
	for _, d := range []int{4294967291, 4294967290, 3000000011} {
		for _, k := range []int{3, 40, 701, 5000} {
			sameMask(h, "stratified", float64(k)/float64(d), []int{d}, func(m dist.Mask, s rng.Stream) []uint32 {
				x := newMaskScratch(h, m.Len())
				h.run(kernels.Stratified(at(h, x.dst), d, m.Len(), s, x.counter, x.scratch)...)
				return x.dst[:m.Len()]
			})
		}
	}
}

// Several masks drawn in one launch equal those drawn one by one.
func subsets(h *fixture) {
	for _, c := range []struct {
		d       int
		density float64
		masks   int
	}{{79510, 0.1, 16}, {79510, 0.004, 1}, {79510, 0.73, 2}, {31, 0.6, 3}, {33, 0.5, 2}, {1000, 0.73, 2},
		{300000, 0.01, 2}} {
		m, err := dist.ParseMask("randk", c.density, []int{c.d}, maskSeed)
		if err != nil {
			h.Fatalf("%v", err)
		}
		words := kernels.Address(0)
		if n := kernels.SubsetsWords(c.d, c.masks); n > 0 {
			words = at(h, make([]uint32, n))
		}
		got, dst, counters := make([][]uint32, c.masks), make([]kernels.Address, c.masks), make([]uint64, c.masks)
		for i := range got {
			got[i] = make([]uint32, m.Len())
			dst[i], counters[i] = at(h, got[i]), rng.New(maskSeed, "mask", uint64(i), 2, 4).Counter()
		}
		for range 2 { // the bitmaps are zero afterwards
			h.run(kernels.Subsets(dst, c.d, m.Len(), counters, words))
			for i := range got {
				if want := m.Draw(nil, i, 4, 2); !slices.Equal(got[i], want) {
					h.Errorf("mask %d of %d, %d coordinates of %d: differs from the mask drawn alone", i, c.masks,
						m.Len(), c.d)
				}
				clear(got[i])
			}
		}
	}
}
