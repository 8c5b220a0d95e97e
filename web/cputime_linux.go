package web

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime calls work and returns the processor time that it took. Wall time would include the
// wait for a processor while training uses all of them.
func processorTime(work func()) time.Duration {
	runtime.LockOSThread() // the clock counts the time of one thread
	defer runtime.UnlockOSThread()
	var begin, end unix.Timespec
	errBegin := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &begin)
	wall := time.Now()
	work()
	if errBegin != nil || unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &end) != nil {
		return time.Since(wall)
	}
	return time.Duration(end.Nano() - begin.Nano())
}
