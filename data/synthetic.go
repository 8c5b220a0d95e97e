package data

import (
	"cmp"
	"fmt"
	"runtime"

	"fspda/internal/rng"
)

// SyntheticOptions configures [Synthetic].
type SyntheticOptions struct {
	Train, Test int    // numbers of examples; 0 means 20000 and 4000
	Seed        uint64 // two seeds make two sets of the same kind
}

const (
	defaultTrain = 20000
	defaultTest  = 4000
	maxSynthetic = 10_000_000 // examples in a split: 8 GB

	side   = 28
	pixels = side * side
	digits = 10
)

// Synthetic generates a set of handwritten-looking digits, 28×28 and 10 classes like MNIST, for
// tests and machines without data. Each example is a pure function of (seed, split, number): a pen
// follows one of several skeletons of the digit, with random proportions, slant, rotation,
// position, thickness and bending, and adds grain, specks and gaps. Every ten examples contain each
// digit once, so class counts differ by at most one. The normalization is MNIST's.
//
// It uses all cores; the bytes do not depend on their number.
func Synthetic(o SyntheticOptions) (*Set, error) {
	o.Train, o.Test = cmp.Or(o.Train, defaultTrain), cmp.Or(o.Test, defaultTest)
	if min(o.Train, o.Test) < 1 || max(o.Train, o.Test) > maxSynthetic {
		return nil, fmt.Errorf("data: set synthetic: %d training and %d test examples, want 1 to %d each", o.Train,
			o.Test, maxSynthetic)
	}
	return New("synthetic", []int{side, side}, digits, mnistMean, mnistStd, drawExamples(o.Seed, 0, o.Train),
		drawExamples(o.Seed, 1, o.Test))
}

// tenLabels returns the labels of ten consecutive examples: each digit once, in random order. So
// classes are balanced at every size of a set, and a small set is a prefix of a large one.
func tenLabels(order rng.Stream, block int) []int32 {
	ten := sequence(digits)
	s := order.Sub(uint64(block))
	s.Permute(ten)
	return ten
}

// drawExamples draws n examples of split 0 (train) or 1 (test).
func drawExamples(seed, split uint64, n int) Examples {
	e := Examples{Pixels: newPixels(n * pixels), Labels: make([]int32, n)}
	order := rng.New(seed, "synthetic", split)
	for from := 0; from < n; from += digits {
		copy(e.Labels[from:], tenLabels(order, from/digits))
	}

	const block = 64
	_ = parallel(runtime.GOMAXPROCS(0), (n+block-1)/block, func(k int) error {
		var p pen
		for i := k * block; i < min((k+1)*block, n); i++ {
			p.draw(e.Pixels[i*pixels:(i+1)*pixels], int(e.Labels[i]), rng.New(seed, "synthetic", split, uint64(i)))
		}
		return nil
	})
	return e
}
