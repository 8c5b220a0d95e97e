package traincmd

import (
	"os"
	"runtime/debug"
)

// limitedFrom is the smallest forecast, in bytes, that limits the memory of the process.
const limitedFrom = 1 << 30

// limitMemory sets Go's memory limit to the forecast of a run and 2 % for what the forecast does
// not count. Without a limit the garbage collector lets the heap double, which matters for a large
// network. A limit set by the user (GOMEMLIMIT) stays.
func limitMemory(forecast uint64) (undo func()) {
	if forecast < limitedFrom || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(forecast + forecast/50))
	return func() { debug.SetMemoryLimit(before) }
}
