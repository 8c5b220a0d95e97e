package data

import (
	"errors"
	"fmt"
)

// ByWriter gives agents whole writers of a set that [LoadWriters] reads: agent i of n has the
// writers ⌊i·W/n⌋ to ⌊(i+1)·W/n⌋−1 of W, in the order of their names. The seed is not used.
type ByWriter struct{}

func (ByWriter) String() string { return "by-writer" }

// Split implements [Partition]: labels do not say who wrote an example.
func (p ByWriter) Split([]int32, int, int, uint64) ([][]int32, error) {
	return nil, errors.New("data: the data set does not say who wrote its examples: choose data writers, or another " +
		"partition")
}

// writerPartition is a Partition by the writers of the examples.
type writerPartition interface {
	Partition
	dealWriters(w *writers, agents int) ([][]int32, error)
}

var _ writerPartition = ByWriter{}

func (p ByWriter) dealWriters(w *writers, agents int) ([][]int32, error) {
	if agents < 1 || agents > len(w.names) {
		return nil, fmt.Errorf("data: %d agents for %d writers, want 1 to %d agents", agents, len(w.names),
			len(w.names))
	}
	shards := make([][]int32, agents)
	for i := range agents {
		from, to := i*len(w.names)/agents, (i+1)*len(w.names)/agents
		for example, writer := range w.of {
			if int(writer) >= from && int(writer) < to {
				shards[i] = append(shards[i], int32(example))
			}
		}
	}
	return shards, nil
}
