package setup

import (
	"fmt"
	"os"
	"runtime/debug"

	"fspda/model"
)

// limitedFrom is the smallest forecast, in bytes, that limits the memory of any process.
const limitedFrom = 1 << 30

// mlpMargin is what the limit of an MLP leaves above the forecast, in bytes: the memory in which the
// garbage collector of a small run finds room.
const mlpMargin = 12 << 20

// LimitMemory sets the memory limit of Go for a run of a network to its forecast, and a margin above:
// 12 MiB for an MLP, nothing for a language model, and 2 % for what is large. Go's limit does not
// count the pages of the program file, which the forecast does: they are subtracted. Without a limit
// the garbage collector lets the heap double. A limit below what is alive would make it collect
// without end, so that small runs of other networks, whose forecasts are rough, have none. A limit
// set by the user (GOMEMLIMIT) stays.
func LimitMemory(forecast uint64, network string) (undo func()) {
	limit := forecast
	switch {
	case os.Getenv("GOMEMLIMIT") != "":
		return func() {}
	case forecast >= limitedFrom:
		limit += forecast / 50
	case network == "mlp":
		limit += mlpMargin
	case !model.IsTransformer(network):
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(limit - min(limit/2, filePages())))
	return func() { debug.SetMemoryLimit(before) }
}

// filePages returns how many bytes of files, such as the program, this process has in memory; 0 if
// the system does not say it in /proc/self/statm.
func filePages() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident, shared uint64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared); err != nil {
		return 0
	}
	return shared * uint64(os.Getpagesize())
}
