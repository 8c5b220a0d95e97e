package web

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime calls work and returns the processor time it took: where all processors are busy
// with training, a clock on the wall would charge the wait for one.
func processorTime(work func()) time.Duration {
	runtime.LockOSThread() // the clock is the thread's
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
