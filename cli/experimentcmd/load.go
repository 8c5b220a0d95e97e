package experimentcmd

import (
	"fmt"
	"math"
	"os"
)

// loadFile has the load averages of a Linux system.
const loadFile = "/proc/loadavg"

// loadOf returns the mean number of processes that ran or waited for a core in the last minute. ok
// is false on systems without such a file.
func loadOf(path string) (load float64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := fmt.Sscan(string(text), &load)
	return load, err == nil && n == 1
}

// fits reports whether a task that wants a number of cores may start while tasks of the queue use
// busy cores. It must fit on the cores of the queue, and stay below the limit of the load, which
// others cause in part. A task that wants more cores than the queue has runs alone, on all of them.
func fits(cores, busy, want int, load, limit float64) bool {
	if busy+want > cores && busy > 0 {
		return false
	}
	others := math.Round(max(0, load-float64(busy)))
	return limit <= 0 || others+float64(busy+min(want, cores)) <= limit
}
