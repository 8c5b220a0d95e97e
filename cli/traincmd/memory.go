package traincmd

import (
	"os"
	"runtime/debug"
)

// keptFrom is from how many bytes of a forecast on a run keeps to it.
const keptFrom = 1 << 30

// keepTo has garbage collected before the process grows beyond what was forecast of it; left alone,
// the collector lets as much garbage lie as there is in use, which doubles the memory of a large
// network. A little is left for what no forecast counts. A limit of the user's own (GOMEMLIMIT)
// stands.
func keepTo(forecast uint64) (undo func()) {
	if forecast < keptFrom || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(forecast + forecast/50))
	return func() { debug.SetMemoryLimit(before) }
}
