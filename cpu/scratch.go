package cpu

import (
	"sync"

	"fspda/device"
)

// scratchSizes says, for the kernels that need room to work in, how many numbers that is for a call of the given dimensions.
var scratchSizes = map[device.Kernel]func(dims []int) int{
	device.Conv:      convScratch,
	device.ConvGradX: convGradXScratch,
	device.ConvGradW: convGradWScratch,
}

// scratchSize is how many numbers a call needs to work in.
func scratchSize(c *device.Call) int {
	if size := scratchSizes[c.Kernel]; size != nil {
		return size(c.Dims)
	}
	return 0
}

// room is what a single call works in. A Program has its own.
type room struct{ numbers []float32 }

var rooms = sync.Pool{New: func() any { return new(room) }}

// borrow returns a room of n numbers, which hold anything. giveBack returns it.
func borrow(n int) *room {
	r := rooms.Get().(*room)
	if cap(r.numbers) < n {
		r.numbers = aligned(n)
	}
	r.numbers = r.numbers[:n]
	return r
}

func (r *room) giveBack() { rooms.Put(r) }
