package vec

import (
	"fmt"

	"fspda/device"
)

// Index is a set of coordinates on this device, in ascending order. It is read-only until it is
// passed to NewIndex as old.
type Index struct {
	coordinates []uint32
}

var _ device.Index = (*Index)(nil)

// Len returns the number of coordinates.
func (x *Index) Len() int { return len(x.coordinates) }

// NewIndex returns an Index that holds a copy of coordinates, in the memory of old if that is not
// nil: old must not be used afterwards, except as the result. It panics if the coordinates are not
// strictly ascending.
func (Ops) NewIndex(coordinates []uint32, old device.Index) device.Index {
	for j := 1; j < len(coordinates); j++ {
		if coordinates[j-1] >= coordinates[j] {
			panic(fmt.Sprintf("cpu: NewIndex: coordinate %d is %d after %d, want ascending and distinct coordinates",
				j, coordinates[j], coordinates[j-1]))
		}
	}
	x, _ := indexOf("NewIndex", old)
	if x == nil {
		x = &Index{}
	}
	x.coordinates = append(x.coordinates[:0], coordinates...)
	return x
}

// indexOf returns idx as one of this device, and its length, for the operation op. It returns nil
// if idx stands for all coordinates.
func indexOf(op string, idx device.Index) (x *Index, n int) {
	if idx == nil {
		return nil, 0
	}
	x, ok := idx.(*Index)
	if !ok {
		panic(fmt.Sprintf("cpu: %s: %T is not an index of this device, want *cpu.Index", op, idx))
	}
	if x == nil { // a nil *Index in the interface also stands for all coordinates
		return nil, 0
	}
	return x, len(x.coordinates)
}

// inside returns the coordinates, and panics if one lies beyond a vector of n elements. Only the
// last one can.
func (x *Index) inside(op string, n int) []uint32 {
	if k := len(x.coordinates); k > 0 && int(x.coordinates[k-1]) >= n {
		panic(fmt.Sprintf("cpu: %s: coordinate %d is outside of a vector of length %d", op, x.coordinates[k-1], n))
	}
	return x.coordinates
}
