package data

import (
	"fmt"
	"slices"
	"sync"

	"fspda/device"
)

// Labels are the classes of examples that another program has, for [Indexed].
type Labels struct {
	Train, Test []int32
	Classes     int      // 0: one more than the largest label
	ClassNames  []string // nil: not known
}

// Indexed makes a set of examples that another program loads: its batches have Rows, the indices of
// examples, and neither bytes nor values. The CacheKey of a batch says of which Split it is.
func Indexed(name string, l Labels) (*Set, error) {
	classes := l.Classes
	if classes == 0 && len(l.Train)+len(l.Test) > 0 {
		classes = int(slices.Max(slices.Concat(l.Train, l.Test))) + 1
	}
	if len(l.Train) == 0 || len(l.Test) == 0 {
		return nil, fmt.Errorf("data: set %s: %d training and %d test examples, want at least one of each", name,
			len(l.Train), len(l.Test))
	}
	norm, err := newNormalizer([]float32{0}, []float32{1})
	if err != nil {
		return nil, err
	}
	s := &Set{Name: name, Shape: []int{1}, Classes: classes, Mean: []float32{0}, Std: []float32{1},
		ClassNames: slices.Clone(l.ClassNames)}
	for _, half := range []struct {
		labels []int32
		to     *Split
	}{{l.Train, &s.Train}, {l.Test, &s.Test}} {
		if err := checkLabels(half.labels, classes); err != nil {
			return nil, fmt.Errorf("data: set %s: %w", name, err)
		}
		*half.to = Split{Labels: half.labels, shape: volume(s.Shape), norm: norm,
			variation: variation{augment: None}, store: new(device.CacheKey)}
	}
	s.print = sync.OnceValue(s.hash)
	return s, nil
}

// Key returns the CacheKey of the batches of the split, if they refer to its memory.
func (s Split) Key() *device.CacheKey { return s.store }
