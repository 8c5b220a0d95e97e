package setup

import (
	"os"
	"runtime/debug"
)

// limitedFrom is the smallest forecast, in bytes, that limits the memory of any process.
const limitedFrom = 1 << 30

// LimitMemory sets the memory limit of Go a little above the forecast of a run: 4 % for a small MLP,
// whose forecast is exact, and 2 % for what is large. Without a limit the garbage collector
// lets the heap double. A limit below what is alive would make it collect without end. A limit set
// by the user (GOMEMLIMIT) stays.
func LimitMemory(forecast uint64, exact bool) (undo func()) {
	limit := forecast + forecast/25
	if forecast >= limitedFrom {
		limit = forecast + forecast/50
	}
	if forecast < limitedFrom && !exact || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(limit))
	return func() { debug.SetMemoryLimit(before) }
}
