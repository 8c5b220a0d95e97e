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
	dst            []uint32
	counter, words kernels.Address
	scratch        kernels.Address
}

func newMaskScratch(h *fixture, k, d int) maskScratch {
	two := kernels.StratifiedScratch
	m := maskScratch{dst: make([]uint32, k+1), counter: at(h, make([]uint64, 1)), scratch: at(h, two[:])}
	if d < 1<<24 {
		m.words = at(h, make([]uint32, kernels.SubsetWords(d)))
	}
	return m
}

// sameMask compares a mask with that of dist, for a few iterations with the same scratch.
func sameMask(h *fixture, spec string, density float64, sizes []int, draw func(m dist.Mask, s rng.Stream) []uint32) {
	m, err := dist.ParseMask(spec, density, sizes, maskSeed)
	if err != nil {
		h.Errorf("%v", err)
		return
	}
	for it := range 3 {
		want := m.Draw(nil, it, 4, 2)
		if got := draw(m, rng.New(maskSeed, "mask", uint64(it), 2, 4)); !h.broken && !slices.Equal(got, want) {
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
			x := newMaskScratch(h, m.Len(), c.d)
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
				x := newMaskScratch(h, m.Len(), d)
				h.run(kernels.Stratified(at(h, x.dst), d, m.Len(), s, x.counter, x.scratch)...)
				return x.dst[:m.Len()]
			})
		}
	}
}

func subset(h *fixture) {
	for _, d := range []int{2, 31, 33, 1000, 79510} {
		x := newMaskScratch(h, d, d)
		for _, density := range []float64{0.004, 0.1, 0.5, 0.73} {
			sameMask(h, "randk", density, []int{d}, func(m dist.Mask, s rng.Stream) []uint32 {
				if m.Dense() {
					h.run(kernels.Iota(at(h, x.dst), 0, d))
				} else {
					h.run(kernels.Subset(at(h, x.dst), d, m.Len(), s, x.counter, x.words)...)
				}
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
	}{{79510, 0.1, 16}, {31, 0.6, 3}, {300000, 0.01, 2}} {
		m, err := dist.ParseMask("randk", c.density, []int{c.d}, maskSeed)
		if err != nil {
			h.Errorf("%v", err)
			return
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
				if want := m.Draw(nil, i, 4, 2); !h.broken && !slices.Equal(got[i], want) {
					h.Errorf("mask %d of %d, %d coordinates of %d: differs from the mask drawn alone", i, c.masks,
						m.Len(), c.d)
				}
				clear(got[i])
			}
		}
	}
}

func layers(h *fixture) {
	sizes, density := []int{78400, 100, 1000, 10}, 0.1
	counts := []int{7839, 9, 99, 1} // the counts of dist's rule, which rounds 1-0.9 first
	x := newMaskScratch(h, 8000, 78400)
	sameMask(h, "randk-per-layer", density, sizes, func(m dist.Mask, s rng.Stream) []uint32 {
		h.run(kernels.Layers(at(h, x.dst), sizes, counts, s, x.counter, x.words)...)
		return x.dst[:m.Len()]
	})
}

func block(h *fixture) {
	sameMask(h, "block", 0.6, []int{1000}, func(m dist.Mask, s rng.Stream) []uint32 {
		x := newMaskScratch(h, 1000, 1000)
		h.run(kernels.Block(at(h, x.dst), 1000, m.Len(), s)...)
		return x.dst[:m.Len()]
	})
}

func bernoulli(h *fixture) {
	for _, density := range []float64{0.0002, 0.01, 0.1, 0.5, 0.999} {
		survival, guide := kernels.GapTables(density)
		g := kernels.Gaps{Survival: at(h, survival), Guide: at(h, guide), Longest: len(survival) - 2}
		const d = 30011
		sameMask(h, "bernoulli", density, []int{d}, func(m dist.Mask, s rng.Stream) []uint32 {
			x, count := newMaskScratch(h, d, d), make([]uint32, 1)
			capacity := m.Len() + 3 // often too small
			h.run(kernels.Bernoulli(at(h, x.dst), capacity, d, g, s, x.counter, at(h, count))...)
			if n := int(count[0]); n > capacity {
				if x.dst[capacity] != 0 {
					h.Errorf("bernoulli wrote beyond the capacity")
				}
				h.run(kernels.Bernoulli(at(h, x.dst), n, d, g, s, x.counter, at(h, count))...)
			}
			return x.dst[:count[0]]
		})
	}
}

// A stream computed on the device equals that of its key.
func streamKey(h *fixture) {
	for _, key := range [][]uint64{nil, {7}, {40, 2, 5}, {1, 2, 3, 4}} {
		counter := make([]uint64, 1)
		h.run(kernels.StreamKey(at(h, counter), rng.Base(9, "mask"), key...))
		if want := rng.New(9, "mask", key...).Counter(); !h.broken && counter[0] != want {
			h.Errorf("key %v: the stream begins at %d, want %d", key, counter[0], want)
		}
	}
}
