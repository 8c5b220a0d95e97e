package cpu

import (
	"sync"

	"fspda/device"
)

// scratchSizes says, for the kernels that need room to work in, how many numbers that is for a call
// of the given dimensions on so many threads.
var scratchSizes = map[device.Kernel]func(dims []int, threads int) int{
	device.Conv:      convScratch,
	device.ConvGradX: convGradXScratch,
	device.ConvGradW: convGradWScratch,
}

// scratchSize is how many numbers a call needs to work in, on one thread or on so many.
func scratchSize(c *device.Call, threads int) int {
	if size := scratchSizes[c.Kernel]; size != nil {
		return max(size(c.Dims, 1), size(c.Dims, threads)) // there may be no team left
	}
	return 0
}

// room is what a part works in: its share of scratch, in whole lines.
func (o *operands) room(part, of int) []float32 {
	n := len(o.scratch) / of / channelStep * channelStep
	return o.scratch[part*n:][:n]
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
