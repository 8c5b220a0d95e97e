package setup

import (
	"os"
	"runtime/debug"

	"fspda/train/memory"
)

// limitedFrom is the smallest forecast, in bytes, that limits the memory of any process.
const limitedFrom = 1 << 30

// LimitMemory sets Go's memory limit to the forecast of a run: of an MLP, whose forecast is exact,
// without the memory of the program that Go does not count; of a large network with 2 % for what
// the forecast does not count. Without a limit the garbage collector lets the heap double. A limit
// set by the user (GOMEMLIMIT) stays.
func LimitMemory(forecast uint64, exact bool) (undo func()) {
	limit := forecast - memory.OutsideHeap
	if forecast >= limitedFrom {
		limit = forecast + forecast/50
	}
	if forecast < limitedFrom && !exact || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(limit))
	return func() { debug.SetMemoryLimit(before) }
}
