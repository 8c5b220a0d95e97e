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
	s.pick(dst, to-from)
	for row := range dst.Rows {
		dst.Rows[row] = int32(from + row)
	}
	copy(dst.Y, s.Labels[from:to])
}

// Gather fills dst with the examples of the given indices, in their order. It reuses the memory of dst where that is large
// enough. It panics where an index is not in [0,Len).
func (s Split) Gather(dst *device.Batch, examples []int32) {
	s.pick(dst, len(examples))
	for row, e := range examples {
		if e < 0 || int(e) >= s.Len() {
			panic(fmt.Sprintf("data: example %d of %d", e, s.Len()))
		}
		dst.Rows[row], dst.Y[row] = e, s.Labels[e]
	}
}

// pick gives dst room for n examples that are rows of the set, and no more memory than that needs.
func (s Split) pick(dst *device.Batch, n int) {
	if cap(dst.Rows) < n || dst.Rows == nil {
		dst.Rows = make([]int32, n)
	}
	if cap(dst.Y) < n {
		dst.Y = make([]int32, n)
	}
	dst.Rows, dst.Y = dst.Rows[:n], dst.Y[:n]
	dst.X, dst.Bytes, dst.Scale, dst.Shift = nil, s.Pixels, s.norm.scales[:], s.norm.shifts[:]
}
