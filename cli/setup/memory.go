package setup

import (
	"os"
	"runtime/debug"

	"fspda/model"
	"fspda/train/memory"
)

// largeFrom is the forecast from which on a run is large, in bytes.
const largeFrom = 1 << 30

// LimitMemory keeps this process to the forecast of a run of a network, by a memory limit of Go, and to
// 2 % more if it is large and no language model, whose forecast is exact. Without a limit the garbage
// collector lets the heap double. A limit set by the user (GOMEMLIMIT) stays.
func LimitMemory(forecast uint64, network string) (undo func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	if forecast >= largeFrom && !model.IsTransformer(network) {
		forecast += forecast / 50
	}
	before := debug.SetMemoryLimit(memory.Limit(forecast))
	return func() { debug.SetMemoryLimit(before) }
}
