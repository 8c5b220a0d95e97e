package memory

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"fspda/device"
	"fspda/train/config"
)

// Estimates of the bytes that a run takes besides the counted ones.
const (
	runtimeGrowth = 5 << 20 // growth of Go's own memory: stacks, the collector's tables, memory not yet freed
	otherGrowth   = 5 << 20 // pages of the program file, and memory that Go had but not touched
)

// keptFree is the share of its memory limit that Go keeps free of objects: 3 %.
const keptFree = 32

// Process forecasts the most bytes that this process will have in memory if it trains on the given
// devices next: its memory now, with its data set, and everything that the run will keep on the
// host. It first frees unused memory.
func Process(s *config.Setup, devices ...device.Device) uint64 {
	if !Release() {
		runtime.GC()
	}
	now, more := resident(), runtimeGrowth+host(s, devices)
	if s.Set.Text == nil { // else the text is in memory
		more += uint64(s.Set.Memory)
	}
	return now.process + otherGrowth + more + (now.runtime+more)/keptFree
}

// Release gives unused memory back to the system, and reports whether it did. Where the user has
// set a memory limit (GOMEMLIMIT), Go does so when the limit is near, and Release does nothing.
func Release() bool {
	if os.Getenv("GOMEMLIMIT") != "" {
		return false
	}
	debug.FreeOSMemory()
	return true
}

// Limit returns the memory limit of Go with which this process takes about the forecast: the
// forecast less the memory that Go does not count, such as the pages of the program file, but at
// least half.
func Limit(forecast uint64) int64 {
	now := resident()
	return int64(forecast - min(forecast/2, now.process-min(now.process, now.runtime)+otherGrowth))
}

// residence is the size of a process in memory, in bytes. Memory that Go has and does not use is
// left out.
type residence struct {
	process uint64 // all of it
	runtime uint64 // the memory that Go has taken from the system, which its memory limit counts
}

// resident returns the size of this process in memory. Where the system does not say it, in
// /proc/self/statm, the pages of the program file are estimated.
func resident() residence {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	unused := m.HeapIdle - m.HeapReleased
	r := residence{runtime: m.Sys - m.HeapIdle}
	r.process = r.runtime + ownProgram/3
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, pages uint64
		if _, err := fmt.Sscan(string(text), &size, &pages); err == nil {
			r.process = pages * uint64(os.Getpagesize())
			r.process -= min(r.process, unused)
		}
	}
	return r
}
