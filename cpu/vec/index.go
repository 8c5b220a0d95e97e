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
	var x *Index
	if old != nil {
		x = indexOf("NewIndex", old)
	} else {
		x = &Index{}
	}
	x.coordinates = append(x.coordinates[:0], coordinates...)
	return x
}

// Bound returns the largest coordinate plus one.
func (x *Index) Bound() int {
	if len(x.coordinates) == 0 {
		return 0
	}
	return int(x.coordinates[len(x.coordinates)-1]) + 1
}

// coordinates returns the coordinates of an index of this device.
func coordinates(idx device.Index) []uint32 { return indexOf("Do", idx).coordinates }

// indexOf returns idx as one of this device, for the operation op.
func indexOf(op string, idx device.Index) *Index {
	x, ok := idx.(*Index)
	if !ok {
		panic(fmt.Sprintf("cpu: %s: %T is not an index of this device, want *cpu.Index", op, idx))
	}
	return x
}
