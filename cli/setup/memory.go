package setup

import (
	"os"
	"runtime/debug"

	"fspda/model"
	"fspda/train/memory"
)

// largeFrom is the forecast from which on a run is large, in bytes.
const largeFrom = 1 << 30

// LimitMemory sets the memory limit of Go for a run of a network, so that the process takes about
// its forecast. A large run gets 2 % more, unless it trains a language model, whose forecast is
// more exact. Without a limit the garbage collector lets the heap double. A limit set by the user
// (GOMEMLIMIT) stays, and forecasts, which frees memory first, is not called.
func LimitMemory(forecasts func() uint64, network string) (undo func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	forecast := forecasts()
	if forecast >= largeFrom && !model.IsTransformer(network) {
		forecast += forecast / 50
	}
	before := debug.SetMemoryLimit(memory.Limit(forecast))
	return func() { debug.SetMemoryLimit(before) }
}
