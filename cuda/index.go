package cuda

import (
	"fmt"
	"runtime"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// Index is a set of coordinates in the memory of a GPU, as uint32 in ascending order.
type Index struct {
	d     *Device
	n     int
	last  uint32 // the largest
	block executor.Block

	dep executor.Dependency
}

var _ device.Index = (*Index)(nil)

func (x *Index) Len() int { return x.n }

// Bound returns a length that all coordinates are below.
func (x *Index) Bound() int {
	if x.n == 0 {
		return 0
	}
	return int(x.last) + 1
}

// address returns 0 for all coordinates.
func (x *Index) address() kernels.Address {
	if x == nil {
		return 0
	}
	return x.block.Address()
}

// NewIndex returns an Index with a copy of coordinates. It reuses the memory of old where that is
// large enough; old must not be used any more. It panics if the coordinates are not strictly
// ascending.
func (d *Device) NewIndex(coordinates []uint32, old device.Index) device.Index {
	for j := 1; j < len(coordinates); j++ {
		if coordinates[j-1] >= coordinates[j] {
			panic(fmt.Sprintf("cuda: NewIndex: coordinate %d is %d after %d, want ascending and distinct coordinates",
				j, coordinates[j], coordinates[j-1]))
		}
	}
	x := d.reuseIndex("NewIndex", old, len(coordinates))
	x.n, x.last = len(coordinates), 0
	if x.n > 0 {
		x.last = coordinates[x.n-1]
	}
	const most = executor.ChunkBytes / 4
	for at := 0; at < x.n; at += most {
		part := coordinates[at:min(at+most, x.n)]
		d.upload(x.block.At+driver.Pointer(4*at), 4*len(part), func(b *executor.Buffer) {
			copy(unsafe.Slice((*uint32)(b.Pointer()), len(part)), part)
		}, &x.dep)
	}
	return x
}

func (d *Device) allocIndex(x *Index, n int) {
	ex := d.exec
	var err error
	if x.block, err = ex.TakeBlock(4 * n); err != nil {
		ex.Fail(fmt.Errorf("making an index of %d coordinates: %w", n, err))
		return
	}
	runtime.AddCleanup(x, ex.Discard, x.block)
}

// index returns idx as an Index of this device, or nil where it stands for all coordinates.
func (d *Device) index(op string, idx device.Index) *Index {
	if idx == nil {
		return nil
	}
	x, ok := idx.(*Index)
	if !ok || x.d != d {
		panic(fmt.Sprintf("cuda: %s: index is a %T or of another device, want *cuda.Index of %s", op, idx, d.name))
	}
	return x
}
