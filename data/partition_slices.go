package data

import (
	"fmt"

	"fspda/internal/rng"
)

// Shuffled splits a random permutation into equal slices of floor(N/n) examples. The remainder is
// dropped; with Spread, the first N mod n agents get one more example instead.
type Shuffled struct{ Spread bool }

// Sorted sorts the examples by label, stably, and splits them into equal slices of floor(N/n). With
// as many agents as classes each agent has almost only one class. The remainder, examples of the
// last classes, is dropped; with Spread, the first N mod n agents get one more example instead. The
// seed is not used.
type Sorted struct{ Spread bool }

// ByClass gives agent i exactly the examples of class i. It needs as many agents as classes. The
// seed is not used.
type ByClass struct{}

var (
	_ Partition = Shuffled{}
	_ Partition = Sorted{}
	_ Partition = ByClass{}
)

func (p Shuffled) String() string { return withSpread("shuffled", p.Spread) }
func (p Sorted) String() string   { return withSpread("sorted", p.Spread) }
func (ByClass) String() string    { return "by-class" }

func withSpread(name string, spread bool) string {
	if spread {
		return name + "(spread)"
	}
	return name
}

func (p Shuffled) Split(labels []int32, classes, agents int, seed uint64) ([][]int32, error) {
	if err := checkSplit(labels, classes, agents); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	order := sequence(len(labels))
	s := rng.New(seed, "partition")
	s.Permute(order)
	return equalSlices(order, agents, p.Spread), nil
}

func (p Sorted) Split(labels []int32, classes, agents int, _ uint64) ([][]int32, error) {
	if err := checkSplit(labels, classes, agents); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	order := make([]int32, 0, len(labels))
	for _, of := range members(labels, classes) {
		order = append(order, of...)
	}
	return equalSlices(order, agents, p.Spread), nil
}

// equalSlices cuts order into equal slices, one per agent.
func equalSlices(order []int32, agents int, spread bool) [][]int32 {
	size, extra := len(order)/agents, 0
	if spread {
		extra = len(order) % agents
	}
	shards := make([][]int32, agents)
	for i := range shards {
		n := size
		if i < extra {
			n++
		}
		shards[i], order = order[:n:n], order[n:]
	}
	return shards
}

func (p ByClass) Split(labels []int32, classes, agents int, _ uint64) ([][]int32, error) {
	if err := checkSplit(labels, classes, agents); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if agents != classes {
		return nil, fmt.Errorf("data: %d agents and %d classes, want as many agents as classes: use %d agents, or the "+
			"partition sorted", agents, classes, classes)
	}
	shards := members(labels, classes)
	for class, shard := range shards {
		if len(shard) == 0 {
			return nil, fmt.Errorf("data: no example of class %d, so agent %d would have none", class, class)
		}
	}
	return shards, nil
}
