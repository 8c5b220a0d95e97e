package data

import (
	"fmt"

	"fspda/device"
)

// Batch fills dst with the consecutive examples from, from+1, ... to-1, for evaluation. It reuses the memory of dst where that is
// large enough. It panics where 0 <= from <= to <= Len does not hold.
func (s Split) Batch(dst *device.Batch, from, to int) {
	if from < 0 || to < from || to > s.Len() {
		panic(fmt.Sprintf("data: batch of examples %d to %d of %d", from, to, s.Len()))
	}
	resize(dst, to-from, s.features)
	s.norm.apply(dst.X, s.Pixels[from*s.features:to*s.features], nil)
	copy(dst.Y, s.Labels[from:to])
}

// examplesAhead is how many examples before its turn an example is asked for.
const examplesAhead = 4

// Gather fills dst with the examples of the given indices, in their order. It reuses the memory of dst where that is large
// enough. It panics where an index is not in [0,Len).
func (s Split) Gather(dst *device.Batch, examples []int32) {
	f := s.features
	resize(dst, len(examples), f)
	for _, e := range examples {
		if e < 0 || int(e) >= s.Len() {
			panic(fmt.Sprintf("data: example %d of %d", e, s.Len()))
		}
	}
	pixels := func(row int) []uint8 { return s.Pixels[int(examples[row])*f:][:f] }
	for row, e := range examples {
		s.norm.apply(dst.X[row*f:(row+1)*f], pixels(row), pixels(min(row+examplesAhead, len(examples)-1)))
		dst.Y[row] = s.Labels[e]
	}
}

// resize gives dst room for n examples, and no more memory than that needs.
func resize(dst *device.Batch, n, features int) {
	if cap(dst.X) < n*features {
		dst.X = make([]float32, n*features)
	}
	if cap(dst.Y) < n {
		dst.Y = make([]int32, n)
	}
	dst.X, dst.Y = dst.X[:n*features], dst.Y[:n]
}
